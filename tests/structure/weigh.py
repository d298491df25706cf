"""What knows what, held at WEIGHTS: coupling grows where nobody looks, one include and one `if` at a time.

    weigh.py [TOP]    prints each row; exits with 1 where one is over 1 % more than its number, and says which

reach    lines of src/ that a part includes, directly or not; which folders it may not reach is a rule of ci/assemble.py
modes    lines in functions of core/ and effects/ that know several ways in which a gate runs, by their words (MODES)
seams    lines of core/ and effects/ that name the hook of an extension, and the parts that have them

Functions are found by universal-ctags. Where there is none, the rows of modes are not checked, and that is said.
"""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

# A row that fell is written down at once, so that nothing takes its place. One that has to grow says why in its commit.
WEIGHTS = {
    "reach of effects/load/connection.hpp": 9687,
    "reach of effects/targets/live_target.hpp": 14607,
    "lines in functions of two modes or more": 2987,
    "lines in functions of four modes or more": 64,
    "lines that name a hook": 109,
    "parts that name a hook": 33,
}
MODES = {
    "live baseline": r"\bpaired|\bpairs?\b|in_pairs|baseline(?!_file)|variant",
    "at once": r"at_once|by_slices|\btwin|early_looks|slices?_at",
    "stored": r"stored_baseline|stored_side|\bt\.stored|write_baseline|baseline_file",
    "history": r"past_|\bpast\b|day_sd|history(?!_)",
    "calibration": r"calibrat|prior_noise|noise_repeats",
    "search": r"capacity|\bprobe|load_search|searche[sd]",
    "rehearsal": r"rehears|stand_in",
    "several machines": r"\branks?\b|shard|sharing",
    "side tasks": r"side_task|\btasks?\b|on_fail|recover",
    "sessions": r"session(?!_)|plays_out|subagent",
    "conversations": r"\bturns?\b|conversation|dialogue",
    "labels": r"label|\bmix",
    "early end": r"early_end|ended_early|misses_so_far",
    "drift": r"drift|thirds?\b",
    "answers": r"\bgraded?\b|same_answers|answer_keep|flips?\b",
    "server page": r"server_metric|metrics_page|cross_check|gauge",
    "own": r"\bown_|transport",
    "cut off": r"cut_off|given_up",
}
HOOKS = re.compile(
    r"&extension::|\bextension[*&]|struct extension\b|const extension\b|\bextensions\(\)|has_extension|the_one_with"
    r"|\bthe_(search|faults|answers|past|rehearsals|sharing|work)\(|base/extension\.hpp|load_sharing|past_judge"
    r"|program_section|own_transport|own_metrics|report_parts|parts_of_extensions")


def is_code(line):
    s = line.strip()
    return bool(s) and not s.startswith(("//", "#include", "#pragma")) and \
        not re.match(r"(inline )?namespace|}  // (inline )?namespace", s)


def reach(parts, of):
    seen, todo = set(), [of]
    while todo:
        for name in re.findall(r'^#include "([^"]+)"', parts[todo.pop()], re.M):
            if name in parts and name not in seen:
                seen.add(name)
                todo.append(name)
    return sum(parts[p].count("\n") for p in seen)


def lines_by_modes(src, parts, names):
    """How many lines of code functions have that know so many modes; None without universal-ctags."""
    told = shutil.which("ctags") and subprocess.run(["ctags", "--version"], capture_output=True, text=True).stdout
    if not told or "Universal Ctags" not in told:
        return None
    out = subprocess.run(["ctags", "--languages=C++", "--langmap=C++:+.hpp", "--kinds-C++=f", "--fields=+neK",
                          "--output-format=json", "-f", "-", *names], cwd=src, check=True, capture_output=True,
                         text=True).stdout
    lines = {}
    for tag in map(json.loads, out.splitlines()):
        if tag.get("kind") != "function" or "end" not in tag or tag["name"].startswith("__anon"):
            continue
        body = list(filter(is_code, parts[tag["path"]].split("\n")[tag["line"] - 1:tag["end"]]))
        known = sum(any(re.search(words, line) for line in body) for words in MODES.values())
        lines[known] = lines.get(known, 0) + len(body)
    return lines


def weighed(src):
    parts = {p.relative_to(src).as_posix(): p.read_text(encoding="utf-8")
             for p in sorted(src.rglob("*")) if p.suffix in (".hpp", ".cpp")}
    names = [n for n in parts if n.startswith(("core/", "effects/"))]
    rows = {row: reach(parts, row.removeprefix("reach of ")) for row in WEIGHTS if row.startswith("reach of ")}
    by_modes = lines_by_modes(src, parts, names)
    for row, least in (("two", 2), ("four", 4)):
        rows[f"lines in functions of {row} modes or more"] = \
            by_modes and sum(n for known, n in by_modes.items() if known >= least)
    rows["lines that name a hook"] = sum(bool(HOOKS.search(line)) for n in names for line in parts[n].split("\n"))
    rows["parts that name a hook"] = sum(bool(HOOKS.search(parts[n])) for n in names)
    return rows


def main():
    grown = []
    for row, now in weighed(Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "src").items():
        held = WEIGHTS[row]
        if now is None:
            print(f"{row}: not checked, as there is no universal-ctags")
            continue
        print(f"{row}: {now:,} of {held:,}")
        if now > 1.01 * held:
            grown.append(f"{row}: {now:,} is over 1 % more than {held:,}. Take a dependency out, or say in the commit why "
                         "it must grow and write the new number into tests/structure/weigh.py")
    print("\n".join(grown), end="\n" if grown else "")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
