"""The list of checks in src/, the list of them for users, and their tests have the same names.

    checks.py [TOP]     from the top of the repository; says what is wrong

guides/what_can_fool_a_gate.md has all of them in their order, each with the real case that it catches. Of two
neighbours either test_checks.cpp says which is told first, or mutations.py why nobody sees it.
"""
import pathlib
import re
import sys

import mutations

LIST = "guides/what_can_fool_a_gate.md"
HEAD = "## The checks"
NAME = re.compile(r"`(\w+)`")
ORDER = re.compile(r'^        \{"(\w+)", "(\w+)",', re.M)
TESTS = "tests/core/judging/test_checks.cpp"


def faults_of_orders(rows, tests):
    """The first fault of each kind."""
    swaps = {m for m in mutations.mutants_of(rows, []) if m.startswith("swap ")}
    tested = {f"swap {a} and {b}" for a, b in ORDER.findall(tests)}
    said = tested | set(mutations.SURVIVES)
    for swap in sorted(swaps - said)[:1]:
        yield f"{TESTS} does not say which of {swap[5:]} is told first, nor mutations.py why nobody sees it"
    for swap in sorted(said - swaps)[:1]:
        yield f"{swap[5:]} are no neighbours, and {TESTS} or mutations.py has them as such"
    for swap in sorted(tested & set(mutations.SURVIVES))[:1]:
        yield f"{TESTS} says which of {swap[5:]} is told first, and mutations.py that nobody sees it"


def checks_in(page):
    """The names of each item of the list, and whether it has a real case."""
    section = page[page.index(HEAD):].split("\n## ")[0] if HEAD in page else ""
    items = re.findall(r"^- (`\w+`(?:, `\w+`)*): (.*(?:\n  .*)*)", section, re.M)
    return [(name, "*Case*: " in text) for names, text in items for name in NAME.findall(names)]


def faults_in(top):
    def text_of(path):
        return (top / path).read_text(encoding="utf-8")

    kinds = mutations.ROW.findall(text_of("src/core/judging/checks.hpp"))
    rows = [name for name, _ in kinds]
    for name in {name for name in rows if rows.count(name) > 1}:
        yield f"src/core/judging/checks.hpp has two checks {name}"
    readme = text_of("tests/README.md")
    listed = checks_in(text_of(LIST))
    names = [name for name, _ in listed]
    for i in range(max(len(rows), len(names))):
        row, name = (all_[i] if i < len(all_) else "nothing" for all_ in (rows, names))
        if row != name:
            yield f"{LIST} lists {name} where src/core/judging/checks.hpp has {row}"
            break
    for name, case in listed:
        if not case:
            yield f"{LIST} has no real case for {name}"
    yield from faults_of_orders(kinds, text_of(TESTS))
    constants = mutations.constants_in(text_of("src/core/judging/rule.hpp"))
    numbers = f"seeds {len(list(mutations.mutants_of(kinds, constants)))} faults"
    unseen = f"{len(mutations.SURVIVES)} swaps change no verdict"
    for said in (numbers, unseen):
        if said not in " ".join(readme.split()):
            yield f"tests/README.md does not say of mutations.py: {said}"


def main():
    faults = list(faults_in(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(faults))
    return bool(faults)


sys.exit(main())
