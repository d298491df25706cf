"""Writes a file that compiles several test files at once, so that what they include is read once.

    together.py WRITTEN TEST...

The includes of all stand before them and do nothing when they are met again, so that each file can be
read into a namespace of its own: what one calls its helpers is nothing to the others, and no test file
knows that it is compiled this way. `__FILE__`, by which doctest tells them apart, stays theirs.
"""
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'#\s*include\s*"([^"]+)"')
# An include keeps the conditions that it stands under; they are empty where it is code that they hold.
CARRIED_OVER = re.compile(r"#\s*(include|if|ifdef|ifndef|elif|else|endif)\b")


def includes_of(test):
    for line in test.read_text(encoding="utf-8").splitlines():
        if not CARRIED_OVER.match(line):
            continue
        beside = INCLUDE.match(line)
        if beside and (test.parent / beside[1]).exists():
            line = f'#include "{test.parent / beside[1]}"'
        yield line


def main(written, *tests):
    tests = [Path(test) for test in tests]
    lines = [line for test in tests for line in includes_of(test)]
    for test in tests:
        lines += [f"namespace {test.stem}_file {{", f'#include "{test}"', "}"]
    Path(written).write_text("\n".join(lines) + "\n", encoding="utf-8")


main(*sys.argv[1:])
