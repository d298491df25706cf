"""Whether what the scripts call is installed by the script that starts them: on a bare Debian there are
only git and what every Debian has.

    commands.py               says what is not, by script and line, and fails
    commands.py FILE NEED...  of one script, as if it were started by one that calls these functions

It reads bash well enough to see each word that is called as it stands there, in $( ) and behind env,
exec, timeout and the like too, and what Python gives subprocess as a list. What it cannot see: a name in
a variable, what is handed to a function, what C++ starts, and what those programs call in turn; of these
CALLED_BY says what is known. The tests that a newcomer's `ci/test.sh` starts are held against what that
installs, with the scripts that they name and what these import.
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Of every Debian (what is essential or required), and git, which brought this here.
EVERYWHERE = """apt-get awk basename bash cat chmod chroot chrt cmp comm cp cut date diff dirname env find
    git grep head ln mkdir mktemp mount mountpoint mv nproc paste realpath rm sed seq setsid sh sha256sum
    sleep sort tail tar tee touch tr umount uname unshare wc xargs""".split()
# Of the packages that ci/common.sh installs.
PACKAGES = {
    "g++": "g++ gcc c++ ar nm size strip", "cmake": "cmake ctest", "ninja-build": "ninja",
    "clang-": "clang++", "python3": "python3", "python3-yaml": "python3", "curl": "curl",
    "shellcheck": "shellcheck", "libxml2-utils": "xmllint", "nodejs": "node", "npm": "npm npx",
    "parallel": "parallel", "bzip2": "bzip2", "procps": "pgrep pkill ps",
    "openmpi-bin": "mpirun.openmpi", "libopenmpi-dev": "mpicxx.openmpi",
    "mpich": "mpirun.mpich", "libmpich-dev": "mpicxx.mpich", "chromium": "chromium",
    "python3-venv": "python3", "debootstrap": "debootstrap", "qemu-user": "qemu-aarch64",
}
CALLED_BY = {"parallel": ["bzip2"]}
MODULES = {"yaml": "python3-yaml", "jsonschema": "python3-jsonschema"}
# Labels of the tests that ci/test.sh leaves to --all, and what it calls before the others.
ONLY_ALL = {"all", "real", "browser", "examples", "consumer", "rates"}
NEWCOMERS = "need_compiler need_python"
# By whom scripts are started; None: by hand, on machines of their own.
STARTED_BY = {"tests/reality/": None, "tests/bench/": None, "ci/packaging/": None,
              "ci/github/": None, "ci/shards/": "ci/test.sh", "ci/": ""}

WRAPPERS = {"env", "exec", "command", "builtin", "nice", "nohup", "timeout", "setsid", "sudo", "xargs", "chrt",
            "stdbuf", "time"}
GO_ON = {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"}
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
PLAIN = re.compile(r"[\w./+:\[-]+$")


class Shell:
    """What a text of bash calls: pairs of a line and a word."""

    def __init__(self, text, line=1):
        self.text, self.at, self.first_line = text, 0, line
        self.called, self.heredocs = [], []
        self.commands(None)

    def line(self, at=None):
        return self.first_line + self.text.count("\n", 0, self.at if at is None else at)

    def ahead(self, what):
        return self.text.startswith(what, self.at)

    def skip_blanks(self):
        while self.at < len(self.text):
            if self.text[self.at] in " \t\r":
                self.at += 1
            elif self.ahead("\\\n"):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def skip_heredocs(self):
        for word, is_script in self.heredocs:
            end = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE).search(self.text, self.at)
            stop = end.start() if end else len(self.text)
            body = self.text[self.at:stop]
            if re.match(r"#!.*\bsh\n|#!.*bash\n", body) and is_script:
                self.called += Shell(body, self.line()).called
            self.at = end.end() if end else stop
        self.heredocs = []

    def past(self, closing):
        """Behind the bracket that closes, over quotes and what is called in between."""
        while self.at < len(self.text) and not self.ahead(closing):
            if not self.part_of_word():
                if closing == "))" and self.text[self.at] == "(":
                    self.at += 1
                    self.past(")")
                else:
                    self.at += 1
        self.at += len(closing)

    def double_quoted(self):
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            if self.text[self.at] == "\\":
                self.at += 2
            elif not (self.text[self.at] in "$`" and self.expansion()):
                self.at += 1
        self.at += 1

    def expansion(self):
        for opening, closing in (("$((", "))"), ("${", "}")):
            if self.ahead(opening):
                self.at += len(opening)
                self.past(closing)
                return True
        if self.ahead("$("):
            self.at += 2
            self.commands(")")
            return True
        if self.ahead("`"):
            self.at += 1
            self.past("`")
            return True
        return False

    def part_of_word(self):
        """Over a quoted or expanded part of a word, if one is here."""
        c = self.text[self.at]
        if c == "\\":
            self.at += 2
        elif c == "'" or self.ahead("$'"):
            begin = self.at + (1 if c == "'" else 2)
            end = begin
            while end < len(self.text) and self.text[end] != "'":
                end += 2 if c == "$" and self.text[end] == "\\" else 1
            self.at = end + 1
        elif c == '"':
            self.double_quoted()
        elif self.ahead("<(") or self.ahead(">("):
            self.at += 2
            self.commands(")")
        else:
            return c in "$`" and self.expansion()
        return True

    def word(self):
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\n;|&()":
            if self.text[self.at] in "<>" and self.text[self.at + 1:self.at + 2] != "(":
                break
            if not self.part_of_word():
                self.at += 1
        if self.ahead("(") and ASSIGNMENT.fullmatch(self.text[begin:self.at]):
            self.at += 1
            self.array()
        return self.text[begin:self.at]

    def array(self):
        while self.at < len(self.text) and not self.ahead(")"):
            self.skip_blanks()
            if self.ahead("\n"):
                self.at += 1
            elif not self.ahead(")"):
                self.word()
        self.at += 1

    def redirection(self):
        match = re.compile(r"\d*(<<<|<<-?|[<>]&|&?>>?|>\||<>?)").match(self.text, self.at)
        if not match or self.text[match.end() - 1:match.end() + 1] in ("<(", ">("):
            return False
        self.at = match.end()
        self.skip_blanks()
        word = self.word()
        if match.group(1) in ("<<", "<<-"):
            self.heredocs.append((word.strip("'\"\\"), word[:1] in "'\"\\"))
        return True

    def pattern_of_case(self):
        """To the ) behind a pattern. False at the end of the case."""
        while True:
            self.skip_blanks()
            if not self.ahead("\n"):
                break
            self.at += 1
        if re.compile(r"esac\b").match(self.text, self.at):
            return False
        self.past(")") if not self.ahead("(") else (setattr(self, "at", self.at + 1), self.past(")"))
        return True

    def commands(self, closing):
        fresh, wrapper, cases = True, "", 0
        while self.at < len(self.text):
            self.skip_blanks()
            if self.at >= len(self.text):
                break
            if closing and self.ahead(closing):
                self.at += len(closing)
                return
            c = self.text[self.at]
            if c == "\n":
                self.at += 1
                self.skip_heredocs()
                fresh, wrapper = True, ""
            elif self.ahead(";;") or self.ahead(";&"):
                self.at = re.compile(r";;?&?").match(self.text, self.at).end()
                self.pattern_of_case()
                fresh, wrapper = True, ""
            elif fresh and self.ahead("(("):
                self.at += 2
                self.past("))")
                fresh = False
            elif self.redirection():
                pass
            elif c in ";|&":
                self.at += 1
                fresh, wrapper = True, ""
            elif c == "(":
                self.at += 1
                self.commands(")")
                fresh = False
            elif c == ")":
                self.at += 1  # of a function's name
                fresh = True
            else:
                begin = self.at
                word = self.word()
                if self.at == begin:
                    self.at += 1
                elif fresh:
                    fresh, wrapper = self.first_word(word, begin, wrapper)
                elif word == "in" and self.case_begins:
                    self.case_begins = False
                    fresh = self.pattern_of_case()
        return

    case_begins = False

    def first_word(self, word, begin, wrapper):
        """Whether the next word is called too, and behind what."""
        if ASSIGNMENT.match(word):
            return True, wrapper
        if wrapper:
            if wrapper == "command" and word in ("-v", "-V"):
                return False, ""
            if wrapper == "env" and word == "-u":
                self.skip_blanks()
                self.word()
                return True, wrapper
            if word.startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", word):
                return True, wrapper
        elif word in GO_ON:
            return True, ""
        elif word == "[[":
            self.past("]]")
            return False, ""
        elif word == "case":
            self.case_begins = True
            return False, ""
        elif word == "trap":
            self.skip_blanks()
            if self.ahead("'"):
                begin = self.at
                self.word()
                self.called += Shell(self.text[begin + 1:self.at - 1], self.line(begin)).called
            return False, ""
        elif word in ("for", "select"):
            self.skip_blanks()
            if self.ahead("(("):
                self.at += 2
                self.past("))")
            return False, ""
        word = word.strip("'\"")
        if self.ahead("()"):
            self.at += 2
            return True, ""
        if PLAIN.match(word):
            self.called.append((self.line(begin), word))
        return (True, word) if word in WRAPPERS else (False, "")


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
    there = set(EVERYWHERE) | functions_of(sourced(path, text))
    there |= set(subprocess.run(["bash", "-c", "compgen -bk"], capture_output=True, text=True,
                                check=True).stdout.split())
    # What a script looks for it does without.
    there |= set(re.findall(r"(?:command -v|has) ([\w.+-]+)", text))
    packages = packages_of(starter)
    for package, commands in PACKAGES.items():
        if any(p == package or package.endswith("-") and p.startswith(package) for p in packages):
            there |= set(commands.split())
    is_shell = path.suffix != ".py"
    for line, word in Shell(text).called if is_shell else called_by_python(text):
        if word.startswith(("/usr/bin/", "/bin/")):
            word = word.rsplit("/", 1)[1]
        for name in [word, *CALLED_BY.get(word, [])]:
            if "/" not in name and not name.startswith("$") and name not in there:
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
