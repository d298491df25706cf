"""Whether what the scripts call is installed by the script that starts them: on a bare Debian there are
only git and what every Debian has.

    commands.py               says what is not, by script and line, and fails
    commands.py FILE NEED...  of one script, as if it were started by one that calls these functions

It looks for the programs of PACKAGES and NOBODYS where bash begins a command, behind env, exec, timeout and
the like too, and for what Python gives subprocess as a list. What it cannot see: a name in a variable, what is
handed to a function, what C++ starts, and what those programs call in turn; of these CALLED_BY says what is
known. The tests that a newcomer's `ci/test.sh` starts are held against what that installs, with the scripts
that they name and what these import.
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Of the packages that ci/common.sh installs.
PACKAGES = {
    "g++": "g++ gcc c++ ar nm size strip", "cmake": "cmake ctest", "ninja-build": "ninja",
    "clang-": "clang++", "python3": "python3", "python3-yaml": "python3", "curl": "curl",
    "shellcheck": "shellcheck", "libxml2-utils": "xmllint", "nodejs": "node", "npm": "npm npx",
    "parallel": "parallel", "bzip2": "bzip2", "procps": "pgrep pkill ps",
    "openmpi-bin": "mpirun.openmpi", "libopenmpi-dev": "mpicxx.openmpi",
    "mpich": "mpirun.mpich", "libmpich-dev": "mpicxx.mpich", "chromium": "chromium",
    "nginx-light": "nginx", "haproxy": "haproxy", "python3-venv": "python3", "debootstrap": "debootstrap", "qemu-user": "qemu-aarch64",
}
CALLED_BY = {"parallel": ["bzip2"]}
MODULES = {"yaml": "python3-yaml", "jsonschema": "python3-jsonschema"}
# Labels of the tests that ci/test.sh leaves to --all, and what it calls before the others.
ONLY_ALL = {"all", "real", "browser", "examples", "consumer", "rates"}
NEWCOMERS = "need_compiler need_python"
# By whom scripts are started; None: by hand, on machines of their own.
STARTED_BY = {"tests/reality/": None, "tests/bench/": None, "ci/packaging/": None,
              "ci/github/": None, "ci/shards/": "ci/test.sh", "ci/": ""}

# Commands that a Debian may lack, of packages that nobody installs here.
NOBODYS = set("""bc column dig file gawk ifconfig jq killall lsof nc netcat netstat python ping rsync ss strace
    sudo tcpdump unzip uuidgen valgrind wget xxd zip""".split())
# What may stand between the begin of a command and the program that it calls.
WRAPPERS = "env|exec|command|nice|nohup|timeout|setsid|sudo|xargs|chrt|stdbuf"
BEGIN = r"(?:^|[;|&({!`]|\b(?:if|then|elif|else|while|until|do)\s|\bin [^()\n]*\)|^[ \t]*[\w*|. -]+\))"
BETWEEN = rf"(?:(?:{WRAPPERS})(?=\s)|[A-Za-z_]\w*\+?=[^\s()]*(?=\s)|(?<=\s)-[-\w]+(?=\s)|(?<=\s)[\d.]+[smhd]?(?=\s))"
NAME = r"(?P<name>(?:/usr)?(?:/bin/)?[A-Za-z][\w.+-]*)(?![\w./=$()\"+-])"
CALL = re.compile(rf"(?={BEGIN}(?:[ \t]*{BETWEEN})*\s*{NAME})", re.MULTILINE)
HEREDOC = re.compile(r"<<-?\s*(['\"\\]?)(\w+)['\"]?(.*)\n((?:.*\n)*?)\t*\2$", re.MULTILINE)
TEXT = re.compile(r"\"(?:(?!\$\()[^\"\n`\\]|\\.)*\"|\$?'[^']*'|(?<=\s)#.*|^#.*", re.MULTILINE)


def called_by_shell(text, known):
    """Lines and names of `known` programs that bash would call. Roughly: texts and what another program reads are
    left out first."""
    def blank(m, keep=""):
        return keep + "\n" * (m[0].count("\n") - keep.count("\n"))

    def heredoc(m):
        is_script = re.match(r"#!.*sh\n", m[4]) and m[1]
        return f"{m[3]}\n" + (m[4] if is_script else "\n" * m[4].count("\n"))

    text = TEXT.sub(lambda m: blank(m, "''" if m[0][0] in "'\"$" else ""), HEREDOC.sub(heredoc, text))
    found = set()
    for m in CALL.finditer(text):
        name = m["name"].rsplit("/", 1)[-1]
        if name in known and not re.search(r"command\s+-[vV]\s*$", text[:m.start("name")][-12:]):
            found.add((text.count("\n", 0, m.start("name")) + 1, name))
    return sorted(found)


def called_by_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if getattr(node.func.value, "id", "") == "subprocess":
                given = node.args[0]
                first = given.elts[0] if isinstance(given, ast.List) and given.elts else given
                if isinstance(first, ast.Constant):
                    yield node.lineno, str(first.value)


def imported_by_python(text):
    for node in ast.walk(ast.parse(text)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else \
            [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for name in names:
            if name.split(".")[0] not in sys.stdlib_module_names:
                yield node.lineno, name.split(".")[0]


def sourced(path, text):
    """The text of a script, with that of what it sources, or is sourced with."""
    if path.parent.name == "ci":
        text += (ROOT / "ci/common.sh").read_text(encoding="utf-8")
    for name in re.findall(r"^\s*(?:# shellcheck source=|source )([\w./-]+\.sh)$", text, re.MULTILINE):
        if (ROOT / name).is_file() and ROOT / name != path:
            text += (ROOT / name).read_text(encoding="utf-8")
    return text


def functions_of(text):
    return set(re.findall(r"^\s*([\w-]+)\(\)", text, re.MULTILINE))


def packages_of(text):
    """What such a text asks ci/common.sh to install."""
    common = (ROOT / "ci/common.sh").read_text(encoding="utf-8")
    bodies = dict(re.findall(r"^(need_\w+)\(\) \{(.*?)(?:^| )\}$", common,
                             re.MULTILINE | re.DOTALL))
    for need in set(re.findall(r"\bneed_\w+", text)):
        text += bodies.get(need, "")
    asked = re.findall(r"\bmissing\+=\(([^)]*)\)|\b(?:try_)?install ([^|;&\n]*)", text)
    return {word.strip('"') for words in asked for one in words for word in one.split()}


def missing(path, text, starter):
    """The calls of a script that nobody installs."""
    # What a script looks for it does without.
    there = functions_of(sourced(path, text)) | set(re.findall(r"(?:command -v|has) ([\w.+-]+)", text))
    known = NOBODYS.union(*(commands.split() for commands in PACKAGES.values()))
    packages = packages_of(starter)
    for package, commands in PACKAGES.items():
        if any(p == package or package.endswith("-") and p.startswith(package) for p in packages):
            there |= set(commands.split())
    is_shell = path.suffix != ".py"
    for line, word in called_by_shell(text, known) if is_shell else called_by_python(text):
        for name in [word, *CALLED_BY.get(word, [])]:
            if name in known and name not in there:
                yield line, name
    for line, name in [] if is_shell else imported_by_python(text):
        if not (path.parent / f"{name}.py").exists() and MODULES.get(name) not in packages:
            yield line, name


def starter_of(path):
    name = str(path.relative_to(ROOT))
    for begin, starter in STARTED_BY.items():
        if name.startswith(begin):
            return name if starter == "" else starter
    return "ci/test.sh"


def newcomers():
    """The scripts of the tests that ci/test.sh starts without --all, and those that these name."""
    text = (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
    labels = {}
    for names, given in re.findall(r"set_tests_properties\(([\w\s]+?)\s+PROPERTIES\s+LABELS\s+(\"[^\"]+\"|\w+)", text):
        for name in names.split():
            labels[name] = set(given.strip('"').split(";"))
    for name, label, script in re.findall(r"llmbench_script_test\((\S+)\s+(\w+)\s+([\w/.-]+)", text):
        if ONLY_ALL & labels.get(name, {label}):
            continue
        path = ROOT / "tests" / script
        text_of_test = path.read_text(encoding="utf-8")
        yield path
        # A script that looks for a module does without it.
        suffixes = "sh" if re.search(r"-c 'import \w+'", text_of_test) else "py|sh"
        for named in re.findall(rf"(?<=[/ ])[\w./-]+\.(?:{suffixes})\b", text_of_test):
            for folder in (path.parent, ROOT):
                if (folder / named).is_file():
                    yield (folder / named).resolve()


def main(arguments):
    if arguments:
        checked = [(Path(arguments[0]).resolve(), "given", " ".join(arguments[1:]))]
    else:
        scripts = [*ROOT.glob("ci/**/*.sh"), ROOT / ".ci/run", *ROOT.glob("tests/**/*.sh"),
                   *ROOT.glob("tests/**/*.py"), *ROOT.glob("ci/*.py")]
        checked = [(p, starter_of(p), None) for p in sorted(scripts)]
        checked += [(p, "ci/test.sh without --all", NEWCOMERS) for p in sorted(set(newcomers()))]
    found = seen = 0
    for path, starter, needs in checked:
        if starter is None or path.name == "common.sh" and path.parent.name == "ci":
            continue
        text = path.read_text(encoding="utf-8")
        calls = needs if needs is not None else (ROOT / starter).read_text(encoding="utf-8")
        seen += 1
        for line, name in missing(path, text, calls):
            found += 1
            by = "what was given" if starter == "given" else starter
            print(f"{path.name if starter == 'given' else path.relative_to(ROOT)}:{line} calls "
                  f"{name}, and {by} installs no package that has it")
    if seen == 0:
        print("there are no scripts")
    return 1 if found or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
