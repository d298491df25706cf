"""Verdicts are decided on numbers and enumerators, and said in core/described: no part of judging,
of the search for a capacity or of comparisons looks into a text, and judging has no sentence.

    decides.py [SRC]    SRC/core/judging, what searches and what compares settings; exits with 1 and says where
"""
import re
import sys
from pathlib import Path

LITERAL = r'"(?:[^"\\]|\\.)*"'
LOOKS = re.compile(rf'[=!]=\s*{LITERAL}|{LITERAL}\s*[=!]='
                   rf'|\b(?:r?find|compare|starts_with|ends_with|contains|strcmp|strstr)\([^()]*"')
SAYS = re.compile(r'"[^"]*[a-z] [a-z][^"]*"|\bprinted\(|\bslo_verdict\b')


def told(part, patterns):
    for number, line in enumerate(part.read_text().splitlines(), 1):
        code = "" if line.startswith("#include") else re.sub(r"\s*//.*", "", line)
        for what, pattern in patterns:
            if pattern.search(code):
                yield f"{part.parent.name}/{part.name}:{number} {what}: {code.strip()}"


def main():
    src = Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    found = []
    for parts in ("core/judging/*", "core/planning/load_search", "extensions/capacity/core/[fs]*", "extensions/compare/core/setting*"):
        patterns = [("looks into a text", LOOKS)]
        if parts == "core/judging/*":
            patterns.append(("says a sentence", SAYS))
        for part in sorted(src.glob(f"{parts}.hpp")):
            found += told(part, patterns)
    print("\n".join(found))
    return bool(found)


sys.exit(main())
