"""The checks of a verdict have the same names in the list in src/ and in the pages about them.

    checks.py [TOP]     from the top of the repository; says what is wrong

tests/README.md lists all of them in their order; guides/what_can_fool_a_gate.md says which one finds
an attempt: "invalid by `served_others`".
"""
import pathlib
import re
import sys

ROW = re.compile(r'^        \{"(\w+)", (?:gate|repeat|variant|objective|label|answers),', re.M)
LISTED = re.compile(r"^- \*\*Checks\*\*.*?(?=^- |^$)", re.M | re.S)
FOUND_BY = re.compile(r"\bby (`\w+`(?:(?:, | or | and )`\w+`)*)")
NAME = re.compile(r"`(\w+)`")


def faults_in(top):
    rows = ROW.findall((top / "src/core/judging/checks.hpp").read_text(encoding="utf-8"))
    for name in {name for name in rows if rows.count(name) > 1}:
        yield f"src/core/judging/checks.hpp has two checks {name}"
    listed = LISTED.search((top / "tests/README.md").read_text(encoding="utf-8"))
    names = NAME.findall(listed[0]) if listed else []
    for i in range(max(len(rows), len(names))):
        row, name = (all_[i] if i < len(all_) else "nothing" for all_ in (rows, names))
        if row != name:
            yield f"tests/README.md lists {name} where src/core/judging/checks.hpp has {row}"
            break
    page = (top / "guides/what_can_fool_a_gate.md").read_text(encoding="utf-8")
    for found in FOUND_BY.finditer(page):
        for name in NAME.findall(found[1]):
            if name not in rows:
                yield f"guides/what_can_fool_a_gate.md names the check {name}, which there is not"


def main():
    faults = list(faults_in(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(faults))
    return bool(faults)


sys.exit(main())
