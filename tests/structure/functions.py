"""Says which functions of the files are longer than they may be.

    functions.py LINES FILE...

A function is what stands between braces after parentheses, its signature included; those inside it,
lambdas, are part of it.
"""
import re
import sys

NO_CODE = re.compile(
    r'R"(\w*)\(.*?\)\1"'            # raw strings
    r"|//[^\n]*|/\*.*?\*/"          # comments
    r'|"(?:\\.|[^"\\\n])*"'         # strings
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'"  # characters, not the marks between digits
    r"|^[ \t]*#(?:\\\n|[^\n])*",    # preprocessor
    re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"\s*(?:template\s*<[^{}()]*>\s*)?(?:inline\s+)?"
                   r"(?:namespace|struct|class|enum|union|extern)\b")
NAME = re.compile(r"([\w~]+|operator\s*\S+)\s*\(")


def functions(text):
    """(name, first line, last line) of each function."""
    code = NO_CODE.sub(lambda m: "\n" * m[0].count("\n"), text)
    line, head, head_line, parentheses = 1, "", 1, 0
    open_scopes = []  # (name or None, first line)
    for c in code:
        if c == "\n":
            line += 1
        parentheses += {"(": 1, ")": -1}.get(c, 0)
        if parentheses > 0 or c not in "{};":
            if not head.strip():
                head_line = line
            head += c
            continue
        inside = any(name for name, _ in open_scopes)
        if c == "{":
            named = None if inside or SCOPE.match(head) else NAME.search(head)
            open_scopes.append((named and named[1], head_line))
        elif c == "}":
            name, first = open_scopes.pop()
            if name:
                yield name, first, line
        head = ""
    if open_scopes or parentheses:
        raise ValueError("braces or parentheses are not balanced")


def main():
    most, found = int(sys.argv[1]), False
    for file in sys.argv[2:]:
        with open(file) as f:
            text = f.read()
        for name, first, last in functions(text):
            lines = last - first + 1
            if lines > most:
                print(f"{file}:{first}: {name} has {lines} lines")
                found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
