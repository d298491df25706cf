"""Numbers that pages repeat are those of src/, and published error rates are those of the constants
that they were measured with.
    constants.py [TOP]        from the top of the repository; says what is wrong
"""
import itertools
import pathlib
import re
import sys

DECLARED = re.compile(r"^ *(?:inline |static )+constexpr (?:unsigned )?[\w:]+(?: long)? ([^;()]+=[^;]+);", re.M)
RULE = re.compile(r"^    (?:double|int) (\w+ = [^;]+);", re.M)  # members of the rule
DEFAULT = re.compile(r"^    (?:time_span|fraction) (\w+)(?: = time_span::from_seconds\(|\{)([\d.]+)[)}]", re.M)
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]

# What a page says: {a} is the value of a constant, {a:word} in letters, {a * 40} computed from it.
SAID = {
    "README.md": [
        "40 s a repeat for the gate at the top, {first_analysis * 40} to {last_noisy_analysis * 40} s in all",
        "at an error level of {false_pass * 100} %",
        "at an error level of {false_fail * 100} %",
    ],
    "examples/README.md": [
        "connect {connect} s, first_event {first_event} s, between_events {between_events} s, total {total} s",
        "| {false_pass * 100} %, {false_fail * 100} %, no | `{{.false_pass",
    ],
    "guides/running.md": [
        "A gate: {first_analysis} to {last_analysis}; up to {last_noisy_analysis} where",
        "A fail needs {first_fail} repeats",
        "live baseline: {first_pair_analysis} to {last_pair_analysis} pairs; up to {last_noisy_pair_analysis} where",
    ],
    "tests/README.md": [
        "from the second to the {('', 'first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth')[last_analysis]};",
        "{first_pair_analysis:word} to {last_pair_analysis:word} of them, or {last_noisy_pair_analysis:word}",
        "assumed noise of {prior_sd * 100} %",
        "with d = {distance_of_modes * 100} %",
        "by the noise of any machine ({most_noise * 100} %)",
        "A calibration of {repeats_of_calibration:word} repeats",
        "leaves the verdict open after {last_analysis:word}, a gate goes on to {last_noisy_analysis:word}",
        "{{.false_pass = {false_pass * 100}_pct, .false_fail = {false_fail * 100}_pct",
        "A fail takes a {('', 'first', 'second', 'third', 'fourth')[first_fail]} repeat",
        "below {tick_ns / 1000000} ms is not noticed",
        "up to {max_gaps_kept // 1000000} million in a program",
    ],
    "guides/capacity.md": [
        "in at most {max_probes_of_a_search} probes",
    ],
    "guides/comparing.md": [
        "`compare` measures up to {max_settings:word} ways",
        "each of {usual_rounds:word} rounds (or `.repeats`, {fewest_rounds} to {max_rounds}) every",
        "rest on {first_pair_analysis:word} to {last_pair_analysis:word} paired log ratios; on up to "
        "{last_noisy_pair_analysis:word} where",
    ],
    "guides/answers.md": [
        "{max_shown_bytes} bytes of the answer, up to {max_answers_shown} questions",
    ],
}

# Whose constants decide which of the published rates.
MEASURED = "tests/structure/measured_with.txt"
RATES = [
    ("core/judging", "verdict, precision, pair, count, answer, label"),
    ("core/measured/drift.hpp", "drift"),
    ("extensions/capacity/core", "capacity"),
    ("extensions/compare/core/settings.hpp", "setting"),
    ("extensions/history/core", "history"),
]


def split(declared):
    """a = 1, b = f(2, 3)"""
    depth, at = 0, 0
    for i, c in enumerate(declared + ","):
        depth += (c in "({") - (c in ")}")
        if c == "," and depth == 0:
            yield declared[at:i]
            at = i + 1


def constants_of(path):
    """Names and values as they stand there, in order."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    rule = re.search(r"struct judging_rule \{.*?^\};", text, re.M | re.S)
    declared = DECLARED.findall(text) + (RULE.findall(rule.group()) if rule else [])
    pairs = [one.split("=", 1) for d in declared for one in split(d) if "=" in one]
    return [(name.strip(), value.strip()) for name, value in pairs if number(value) is not None]


def number(text):
    """3 of "3ull", None of what is no number."""
    plain = re.sub(r"(?<=\d)'(?=\d)", "", re.sub(r"std::size_t\{(\w+)\}", r"\1", text)).strip()
    plain = re.sub(r"\b(\d[\d.e+-]*?)[uUlL]+\b", r"\1", plain)
    return eval(plain, {}) if re.fullmatch(r"[\d.e+\-*/<> ]+", plain) else None


def all_constants(top):
    found = {}
    for path in sorted(top.glob("src/**/*.hpp")):
        pairs = constants_of(path)
        if path.name == "scenario.hpp":
            pairs += DEFAULT.findall(path.read_text(encoding="utf-8"))
        for name, value in pairs:
            found.setdefault(name, set()).add(number(value))
    return found


def said(template, values):
    def shown(m):
        expression, _, how = m.group(1).partition(":")
        v = eval(expression, {"__builtins__": {}}, values)
        if isinstance(v, str):
            return v
        v = round(v, 9)
        return WORDS[int(v)] if how == "word" else f"{v:g}"

    text = re.sub(r"(?<!\{)\{([^{}]+)\}(?!\})", shown, template)
    return text.replace("{{", "{").replace("}}", "}")


def line_of(top, where):
    at = top / "src" / where
    files = sorted(at.glob("*.hpp")) if at.is_dir() else [at]
    return f"{where}: " + ", ".join(f"{name} {value}" for f in files for name, value in constants_of(f))


def table_after(text, head):
    """The rows of the table with this head, as lists of cells."""
    lines = text[text.index(head):].splitlines()[2:] if head in text else []
    rows = list(itertools.takewhile(lambda line: line.startswith("|"), lines))
    return [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows]


def faults_of_findings(top):
    """README has the regressions that gates find, with minutes instead of repeats or pairs."""
    head = "| repeats spread by | 0.1 % | 1 % | 3 % | 6 % |"
    page, seconds = "tests/bench/rates.md", 40
    wanted = [[re.sub(r"(\d+) %, ([\d.]+), .*", lambda m: "%s %% in %.2g min" % (
        m.group(1), float(m.group(2)) * seconds * (2 if name == "in turns" else 1) / 60), cell)
        for cell in cells] for name, *cells in table_after((top / page).read_text(encoding="utf-8"), head)]
    has = [cells for _, *cells in table_after((top / "README.md").read_text(encoding="utf-8"), head)]
    if wanted and has == wanted:
        return []
    return [f"README.md: what a gate finds is not what {page} has: {has} and not {wanted}"]


def main(top):
    values = {name: next(iter(v)) for name, v in all_constants(top).items() if len(v) == 1}
    bad = 0
    for page, templates in SAID.items():
        text = " ".join((top / page).read_text(encoding="utf-8").split())
        for template in templates:
            try:
                wanted = said(template, values)
            except NameError as e:
                print(f"{page}: {e}, or it has several values in src/")
                bad += 1
                continue
            if wanted not in text:
                print(f"{page} does not say, as the constants in src/ do: {wanted}")
                bad += 1
    published = (top / MEASURED).read_text(encoding="utf-8").splitlines()
    for where, programs in RATES:
        line = line_of(top, where)
        if line not in published:
            print(f"{MEASURED}: the rates were measured with other constants than those of {where}. Run "
                  f"`llmbench_rates` {programs} again, publish what they give, and write this line:\n{line}")
            bad += 1
    for fault in faults_of_findings(top):
        print(fault)
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
