"""Seeded faults in the list of checks and in the rule's constants, and which unit tests notice them.

    mutations.py [--sample N] [--only REGEX] [--jobs N] [--resume FILE] [--tests PATH...]

Each row of core/judging/checks.hpp is left out, each two neighbours are swapped, each constant of
core/judging/rule.hpp is moved: doubles by a fifth, whole numbers to half and to twice. A copy of src/
is compiled once, in which all of them can be changed as the program begins; then it runs for each
mutant until its first failed test. What notices most of them runs first: the test of the checks, then
all quick test cases. So a mutant that is killed takes about a second, and one that survives all tests.
All take eight minutes on two cores.
CXX names the compiler. Exits 1 if one survives that SURVIVES does not explain.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^        \{"(\w+)", (gate|repeat|variant|objective|label|answers),', re.M)
CONSTANTS = re.compile(r"^inline constexpr (double|std::size_t|int) (\w+ = [^;]+);", re.M)
RULE = re.compile(r"^struct judging_rule \{\n(?:    .*\n)+?(?=    bool)", re.M)  # its levels and bounds
VALUE = re.compile(r"(\w+) = ([\d.e-]+)")
USUAL = ["tests/core/judging/*.cpp", "tests/core/answers/test_scripted_truth.cpp",
         "tests/core/measured/test_together.cpp"]
CHECKS = "*/test_checks.cpp"  # of the first run for each mutant
SLOW_S = 0.3  # test cases of judging that take longer run after all others

# Why a mutant changes no verdict.
SURVIVES = {
    "swap restarted and served_others": "a server that restarted has no page to compare",
    "swap no_baseline and share_machine": "without a baseline nothing takes a server's time",
    "swap other_tokens and not_played_out": "one is of throughputs, the other of sessions",
    "swap not_played_out and read_together": "no metric is of sessions and of gaps",
    "swap server_metrics and cached_on_page": "no metric is of the server's page and of usage",
    "swap cached_on_page and gaps_of_all": "no statistic is of cached tokens and of gaps",
    "swap untold_end and none_selected": "where no request is selected there are no events",
    "swap none_selected and several_models": "where no request is selected no answer names a model",
    "swap usage_may_hide and usage_over_prompt": "no metric counts output tokens and is of prompts",
    "swap baseline_fails and baseline_may_fail": "one count has one of both causes",
    "swap baseline_may_fail and failed_too_often": "a comparison, and a limit of its own",
    "swap undisturbed and too_close": "what opens a verdict replaces the word of what is too close, and its advice",
    "swap too_close and holds_anyway": "one is of open verdicts, the other of others",
    "swap read_late and client_lost": "each is of verdicts that are invalid by other causes, or by none",
    "swap client_late and open_and_late": "the first finds again what the second opened",
    "swap open_and_late and which_answers": "one is of times, the other of answers",
}

MUTANT = r"""
#include <cfloat>
#include "core/judging/checks.hpp"
#include <cstdlib>
#include <string>
using namespace llmbench::detail;
static const bool is_mutated = [] {
    const char* asked = std::getenv("MUTANT");
    const std::string mutant = asked ? asked : "";
    const auto row = [](const std::string& name) -> check& {
        for (check& c : checks) if (c.name == name) return c;
        std::abort();
    };
    const std::string word = mutant.substr(0, mutant.find(' '));
    const std::string rest = mutant.size() > word.size() ? mutant.substr(word.size() + 1) : "";
    if (word == "without") {
        check& c = row(rest);
        if (c.in_gate) c.in_gate = [](const gate_in_check&) { return cause{}; };
        else c.finds = [](objective_in_check&) { return cause{}; };
    } else if (word == "swap") {
        const std::size_t at = rest.find(" and ");
        std::swap(row(rest.substr(0, at)), row(rest.substr(at + 5)));
    } else if (word == "move") {
        const std::size_t at = rest.find(" by ");
        const std::string name = rest.substr(0, at);
        const double by = std::stod(rest.substr(at + 4));
        @MOVES@ { std::abort(); }
    }
    return true;
}();
"""


def mutants_of(rows, constants):
    names = [name for name, _ in rows]
    for name in names:
        yield f"without {name}"
    for (a, of_a), (b, of_b) in zip(rows, rows[1:]):
        # Checks of answers stay a block; the first of every verdict stays where it is.
        if "cut_off" not in (a, b) and of_a == of_b:
            yield f"swap {a} and {b}"
    for name, kind in constants:
        for by in (("1.2", "0.8") if kind == "double" else ("2", "0.5")):
            yield f"move {name} by {by}"


def constants_in(text):
    """The constants of the rule and their types, then its levels and bounds."""
    plain = [(name, kind) for kind, all_ in CONSTANTS.findall(text) for name, _ in VALUE.findall(all_)]
    return plain + [(f"usual_{name}", "double") for name, _ in levels_in(text)]


def levels_in(text):
    return [(name, value) for name, value in VALUE.findall(RULE.search(text)[0])
            if name.endswith(("_z", "_level"))]


def prepared(work):
    """Copies src/ and makes its table and constants variables; returns rows and constants."""
    shutil.copytree(TOP / "src", work / "src")
    checks = work / "src/core/judging/checks.hpp"
    text = checks.read_text()
    rows = ROW.findall(text)
    text = text.replace("inline constexpr auto checks = ", "inline auto checks = ")
    text = text.replace("constexpr std::size_t place_of_check", "inline std::size_t place_of_check")
    text = text.replace("inline constexpr std::size_t first_of_every", "inline const std::size_t first_of_every")
    checks.write_text(text)
    rule = work / "src/core/judging/rule.hpp"
    text = rule.read_text()
    constants, levels = constants_in(text), levels_in(text)
    text = CONSTANTS.sub(r"inline \1 \2;", text)
    member = RULE.search(text)[0]
    for name, value in levels:
        member = member.replace(f"{name} = {value}", f"{name} = usual_{name}")
    variables = "".join(f"inline double usual_{name} = {value};\n" for name, value in levels)
    rule.write_text(RULE.sub(lambda _: variables + member, text))
    moves = " else ".join(
        f'if (name == "{name}") {name} = static_cast<decltype(+{name})>({name} * by);' for name, _ in constants)
    (work / "mutant.cpp").write_text(MUTANT.replace("@MOVES@", moves + " else "))
    return rows, constants


def compiled(work, tests, jobs):
    """The programs that are run for a mutant, by name. Their folder is the same each time, so that
    ccache knows them."""
    cxx = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "").split() + os.environ.get("CXX", "g++").split()
    subprocess.run([sys.executable, TOP / "ci/assemble.py", "--embed", work / "embedded"], check=True, cwd=TOP)
    flags = ["-std=c++20", "-O1", "-w", "-ffp-contract=off", "-DASIO_STANDALONE", f"-I{work}/src",
             f"-I{work}/embedded", f"-I{TOP}/tests"]
    support = sorted(p for p in (TOP / "tests/support").glob("*.cpp") if p.name not in ("main.cpp", "bodies.cpp"))
    (work / "support.cpp").write_text("".join(f'#include "{p}"\n' for p in support))
    first = [t for t in tests if t.startswith(str(TOP / "tests/core/judging"))]
    sets = {"judging": first, "others": [t for t in tests if t not in first]}
    sources = {"judging": None, "seeds": TOP / "tests/simulated/alone.cpp", "others": None,
               "mutant": work / "mutant.cpp", "support": work / "support.cpp", "main": TOP / "tests/support/main.cpp",
               "bodies": TOP / "tests/support/bodies.cpp", "seeds_mutant": work / "mutant.cpp"}
    for name, files in sets.items():
        sources[name] = work / f"{name}.cpp"
        subprocess.run([sys.executable, TOP / "tests/support/together.py", sources[name], *files], check=True)

    def compile_unit(unit):
        own = ["-DLLMBENCH_NO_DOCTEST"] if unit.startswith("seeds") else []
        subprocess.run([*cxx, *flags, *own, "-c", sources[unit], "-o", work / f"{unit}.o"], check=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:  # the longest first
        list(pool.map(compile_unit, sources))
    programs = {"judging": ("main", "support", "bodies", "mutant", "judging"),
                "seeds": ("seeds_mutant", "seeds"),
                "others": ("main", "support", "bodies", "mutant", "others")}
    for name, units in programs.items():
        objects = [work / f"{u}.o" for u in units]
        subprocess.run([*cxx, *objects, "-pthread", "-o", work / name], check=True)
    return {name: work / name for name in programs}


def run_of(command, mutant):
    env = {**os.environ, "MUTANT": mutant, "LLMBENCH_REPORT_DIR": str(command[0].parent / "report")}
    return subprocess.run(command, env=env, cwd=TOP / "tests", text=True, capture_output=True, timeout=900)


def filter_of(option, names):
    """An option of doctest, which takes names apart at commas."""
    return f"--{option}=" + ",".join(re.sub(r"([\\,])", r"\\\1", name) for name in names)


def runs_of(programs):
    """What is run for a mutant, in order: (name, command), and what the seeds give without one. Ends the
    program if a test fails without a mutation."""
    judging, usual = [programs["judging"], "--no-colors"], {}
    commands = {"judging": [*judging, "--duration=true"], "others": [programs["others"], "--no-colors"],
                "seeds": [programs["seeds"], "--seeds", "300"]}
    for name, command in commands.items():
        usual[name] = run_of(command, "")
        if usual[name].returncode != 0:
            sys.exit(f"without a mutation {name} fail:\n{usual[name].stdout[-2000:]}")
    took = re.findall(r"^([\d.]+) s: (.*)$", usual["judging"].stdout, re.M)
    slow = [name for seconds, name in took if float(seconds) > SLOW_S]
    judging, rest = [*judging, "--abort-after=1"], f"--source-file-exclude={CHECKS}"
    runs = [("checks", [*judging, f"--source-file={CHECKS}"]),
            ("quick cases of judging", [*judging, rest, filter_of("test-case-exclude", slow)]),
            ("others", [*commands["others"], "--abort-after=1"]),
            ("slow cases of judging", [*judging, rest, filter_of("test-case", slow)]),
            ("seeds", commands["seeds"])]
    return [r for r in runs if slow or not r[0].startswith("slow")], usual["seeds"].stdout


def killed_by(runs, usual, mutant):
    """The test case that fails first, "" if none does."""
    for name, command in runs:
        try:
            run = run_of(command, mutant)
        except subprocess.TimeoutExpired:
            return f"{name} do not end"
        if run.returncode == 0 and (name != "seeds" or run.stdout == usual):
            continue
        case = re.search(r"^(?:TEST CASE:\s*|seed )(.*)$", run.stdout, re.M)
        return case[1] if case else "verdicts of simulated seeds" if name == "seeds" else f"{name} end with {run.returncode}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn by a fixed seed; 0: all")
    parser.add_argument("--only", default="", help="mutants whose names match")
    parser.add_argument("--tests", nargs="+", default=USUAL, help="test files or patterns")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", help="a file of results: those that it has are not tried again")
    parser.add_argument("--folder", default=TOP / "build/mutants", type=pathlib.Path)
    asked = parser.parse_args()
    tests = sorted({str(p) for pattern in asked.tests for p in TOP.glob(pattern)})
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    rows, constants = prepared(asked.folder)
    mutants = [m for m in mutants_of(rows, constants) if re.search(asked.only, m)]
    if asked.sample:
        mutants = random.Random(1).sample(mutants, min(asked.sample, len(mutants)))
    results = pathlib.Path(asked.resume or asked.folder / "results.txt")
    known = dict(line.split(": ", 1) for line in results.read_text().splitlines()) if results.exists() else {}
    runs, usual = runs_of(compiled(asked.folder, tests, asked.jobs))

    def tried(mutant):
        if mutant not in known:
            known[mutant] = killed_by(runs, usual, mutant) or "SURVIVES"
            with results.open("a") as file:
                print(f"{mutant}: {known[mutant]}", file=file)
        reason = SURVIVES.get(mutant) if known[mutant] == "SURVIVES" else None
        print(f"{mutant}: {known[mutant]}{reason and ': ' + reason or ''}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(tried, mutants))
    alive = [m for m in mutants if known[m] == "SURVIVES"]
    survivors = [m for m in alive if m not in SURVIVES]
    print(f"{len(mutants)} mutants, {len(mutants) - len(alive)} killed, {len(alive) - len(survivors)} change no "
          f"verdict, {len(survivors)} survive unexplained")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
