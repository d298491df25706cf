"""The documentation: every link leads somewhere, what looks like a file of the repository is one, the
page of the source names what is there, and the first page stays short.
    pages.py README.md...        from the top of the repository; says what is wrong
"""
import os
import re
import sys

MOST_LINES = 250  # of the first page
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")
SOURCE_PAGE = "src/README.md"
PART = re.compile(r"(?:api|core|effects|extensions|program)/[\w./]*")
FILE = re.compile(r"(?:ci|examples|src|tests)/[\w.+/-]*\w/?")


def prose(page):
    """Its lines with their numbers, without blocks of code."""
    inside = False
    for number, line in enumerate(open(page, encoding="utf-8"), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line.rstrip("\n")


def anchors_of(page):
    """As GitHub makes them: lower case, no punctuation, blanks as hyphens, a number for what is there twice."""
    seen = {}
    for _, line in prose(page):
        if not (heading := re.match(r"#+ +(.*)", line)):
            continue
        words = LINK.sub(lambda m: m.group(0)[1:m.group(0).index("]")], heading.group(1))
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        yield anchor if seen[anchor] == 0 else f"{anchor}-{seen[anchor]}"


def faults_of(page, anchors):
    folder = os.path.dirname(page)
    for number, line in prose(page):
        for target in LINK.findall(CODE.sub("``", line)):
            if re.match(r"[a-z]+:|\.\./\.\./actions/", target):  # the second: GitHub's pages of a workflow
                continue
            path, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(folder, path)) if path else page
            if not os.path.exists(to):
                yield f"{page}:{number}: there is no {to}"
            elif anchor and to.endswith(".md"):
                if to not in anchors:
                    anchors[to] = set(anchors_of(to))
                if anchor not in anchors[to]:
                    yield f"{page}:{number}: {to} has no heading #{anchor}"
        for code in CODE.findall(line):
            words = code.strip("`")
            if FILE.fullmatch(words) and "NAME" not in words and not any(
                    os.path.exists(os.path.join(base, words)) for base in ("", folder)):
                yield f"{page}:{number}: there is no {words}"


def source_names():
    """The page of the source names parts, and functions and types that are there."""
    words = set()
    for folder, _, files in os.walk("src"):
        for name in files:
            if not name.endswith(".md"):
                words |= set(re.findall(r"\w+", open(os.path.join(folder, name), encoding="utf-8").read()))
    for number, line in prose(SOURCE_PAGE):
        for name in (code.strip("`") for code in CODE.findall(line)):
            is_part = PART.fullmatch(name) and "NAME" not in name
            is_name = re.fullmatch(r"[a-z]\w*(\(\))?", name)
            if (is_part and not os.path.exists("src/" + name) and not os.path.exists(name)
                    or is_name and name.rstrip("()") not in words):
                yield f"{SOURCE_PAGE}:{number}: src/ has no {name}"


def main(pages):
    anchors = {}
    faults = [fault for page in pages for fault in faults_of(page, anchors)]
    faults += source_names()
    lines = sum(1 for _ in open("README.md", encoding="utf-8"))
    if lines > MOST_LINES:
        faults.append(f"README.md has {lines} lines, at most {MOST_LINES}: a guide takes what is too much")
    for fault in faults:
        print(fault)
    return 1 if faults or not pages else 0


sys.exit(main(sys.argv[1:]))
