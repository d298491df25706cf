"""The first part of examples/README.md is all that a gate file needs, on a page: at most 120 lines, and every
name that a gate file can write stands in it as code. tests/vocabulary compiles each of them, too, beside all
that a file may have opened.
    vocabulary.py          from the top of the repository; says what is wrong
"""
import re
import sys
from pathlib import Path

MOST_LINES = 120
PAGE = "examples/README.md"
COMPILED = "tests/vocabulary"
# Names that are no words of a gate file: what main() and other programs call has recipes of its own.
ELSEWHERE = {"exit_code", "serve_simulated", "read_result", "to_string"}
FUNCTION = re.compile(r"\b([a-z]\w*)\((?:[^()]|\([^()]*\))*\)?\s*$")
CODE = re.compile(r"`+[^`]*`+|```.*?```", re.DOTALL)


def code_of(header):
    """Without comments, texts, preprocessor lines, and what is deprecated."""
    text = re.sub(r"//[^\n]*", "", header)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)
    return re.sub(r"using \w+ \[\[deprecated[^;]*;", "", text)


def declarations(text):
    """What stands in namespaces that users open: heads of functions, and bodies of enumerations."""
    depth, head = [], ""
    for c in text:
        if c == "{":
            is_open = re.search(r"namespace (llmbench|v1|literals)\s*$", head) is not None
            enum = re.search(r"enum class (\w+)", head) if all(depth) else None
            if all(depth) and not is_open and not enum and "namespace" not in head:
                yield head
            depth.append(is_open)
            head = f"enum class {enum[1]} " if enum else ""
        elif c == "}":
            depth.pop()
            if all(depth) and head.startswith("enum class"):
                yield head
            head = ""
        elif c == ";":
            if all(depth):
                yield head
            head = ""
        else:
            head += c


def fields_of(text, struct):
    body = re.search(rf"struct {struct} {{(.*?)^}};", text, re.DOTALL | re.MULTILINE)[1]
    for line in body.split(";"):
        if m := re.search(r"(\w+)\s*(?:=[^;]*|{[^{}]*})\s*$", line):
            yield "." + m[1]


def words(folder):
    """Every name that a gate file can write, with the part of the source that has it."""
    headers = {part: part.read_text(encoding="utf-8") for part in sorted(Path(folder).glob("*.hpp"))}
    opened = {name for h in headers.values() for name in re.findall(r"using enum (\w+);", h)}
    for part, header in headers.items():
        for name in re.findall(r"^#define ((?:CHECK|REQUIRE|WARN)_\w+)", header, re.MULTILINE):
            yield part, name
        text = code_of(header)
        for head in declarations(text):
            if m := re.match(r"enum class (\w+)(.*)", head, re.DOTALL):
                if m[1] in opened:
                    for name in re.findall(r"\b[a-z]\w*", m[2]):
                        yield part, name
            elif m := re.match(r"\s*using (\w+::\w+(?:,\s*\w+::\w+)*)$", head):
                for name in re.findall(r"::(\w+)", m[1]):
                    yield part, name
            elif m := re.search(r'operator""(_\w+)\(', head):
                yield part, m[1]
            elif m := re.search(r"\bpresets? (\w+)\s*=?\s*$", head):
                yield part, m[1]
            elif (m := FUNCTION.search(head)) and "operator" not in head:
                yield part, m[1]
        for name in re.findall(r"any_(?:target|baseline|workload)\(const ([a-z]+)& \w\)", text):
            yield part, name
        for struct in re.findall(r"^struct (\w+) {", text, re.MULTILINE):
            if struct in ("scenario", "endpoint", "process", "request_options"):
                for name in fields_of(text, struct):
                    yield part, name


def main():
    page = Path(PAGE).read_text(encoding="utf-8")
    sections = [m.start() for m in re.finditer(r"^## ", page, re.MULTILINE)]
    first = page[:sections[1]]
    faults = []
    if (lines := first.count("\n")) > MOST_LINES:
        faults.append(f"{PAGE}: its first part has {lines} lines, at most {MOST_LINES} are a page")
    code = "\n".join(CODE.findall(first))
    compiled = "".join(p.read_text(encoding="utf-8") for p in Path(COMPILED).glob("t_*.cpp"))
    known = set()
    for part, name in words("src/api"):
        if name in known or name.lstrip(".") in ELSEWHERE or name.endswith("_"):
            continue
        known.add(name)
        pattern = re.escape(name) if name[0] in "._" else r"\b" + name
        if not re.search(pattern + r"\b", code):
            faults.append(f"{PAGE}: its first part does not have {name}, of {part}")
        if not re.search(pattern + r"\b", compiled):
            faults.append(f"{COMPILED}: no t_*.cpp has {name}, of {part}")
    if len(known) < 150:
        faults.append(f"only {len(known)} names are found in src/api: this script reads it wrongly")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
