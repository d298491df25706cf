"""What llmbench weighs, held at the table in tests/bench/README.md: nobody notices growth otherwise.

    weight.py                     lines and bytes of the headers, lines of src/; README.md repeats the table
    weight.py --compile           also what compiling LLMBENCH_MAIN takes; 77 where the table is of another g++
    weight.py --write             writes lines and bytes anew
    weight.py --write --compile   measures all of it, five minutes, and writes the table and README.md anew
    weight.py --gates             prints what a file with gates reads and takes to compile at -O0

From the top of the repository; uses $CXX (default g++) and $CPPFLAGS. Seconds are user CPU as multiples of
doctest's own main at -O1, measured in the same run, the less of two. They may grow by a quarter, all else by 3 %:
a processor that others share is that much slower for programs of other sizes.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path("tests/bench/README.md")
COMMAND = "python3 tests/structure/weight.py --write"
HEADER, SOURCE = "llmbench.hpp", "`src/`"
COLUMNS = ["lines", "bytes", "-O0", "-Og", "-O1", "-O2", "peak MB"]
USUAL = "-Og"  # of the commands in README.md; its row is held, and the memory is its
MAY_GROW = {USUAL: 1.25}  # it varies with the machine; the others: 1.03
DOCTEST = "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <cfloat>\n#include <doctest/doctest.h>\n"
MAIN = "#define LLMBENCH_MAIN\n#include \"llmbench.hpp\"\n"
COST = re.compile(r"(main\.o`, once for each version of the header \| )[^|]*?(; `-O2`)")
CXX = os.environ.get("CXX", "g++").split()


def compiler():
    def says(option): return subprocess.run([*CXX, option], capture_output=True, text=True).stdout
    name = "clang++" if "clang" in says("--version") else "g++"  # whatever its file is called: c++
    return f"{name} {says('-dumpversion').split('.')[0].strip()}"


def sizes():
    """{row: {column: number}} of the tree."""
    rows = {}
    for path in [Path(HEADER), *sorted(Path("extensions").glob("llmbench_*.hpp"))]:
        text = path.read_bytes()
        rows[path.name] = {"lines": text.count(b"\n"), "bytes": len(text)}
    parts = [p for p in Path("src").rglob("*") if p.suffix in (".hpp", ".cpp")]
    rows[SOURCE] = {"lines": sum(p.read_bytes().count(b"\n") for p in parts)}
    return rows


def table():
    """The same of the page, and the compiler that it is of."""
    text = PAGE.read_text(encoding="utf-8")
    rows = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) + 1 and (cells[0].endswith(".hpp") or cells[0] == SOURCE):
            rows[cells[0]] = {c: float(v.replace(",", "")) for c, v in zip(COLUMNS, cells[1:]) if v}
    measured_by = re.search(r"`LLMBENCH_MAIN` with (\S+ \d+)", text)
    return rows, measured_by and measured_by[1]


def row_of(name, numbers):
    cells = ["" if c not in numbers else f"{numbers[c]:.1f}" if c.startswith("-O") else f"{numbers[c]:,.0f}"
             for c in COLUMNS]
    return f"| {name} | {' | '.join(cells)} |"


def cost(text, level):
    """User CPU in seconds and peak memory in MB."""
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "main.cpp"
        source.write_text(text, encoding="utf-8")
        command = [*CXX, "-std=c++20", *os.environ.get("CPPFLAGS", "").split(), "-I.", level, "-c", str(source),
                   "-o", f"{work}/main.o"]
        # In a process of its own: of children only the sum and the largest are known.
        measure = ("import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n"
                   "used = resource.getrusage(resource.RUSAGE_CHILDREN)\nprint(used.ru_utime, used.ru_maxrss)")
        out = subprocess.run([sys.executable, "-c", measure, *command], check=True, capture_output=True, text=True)
        seconds, kib = map(float, out.stdout.split())
        return seconds, kib * 1024 / 1e6


def gates():
    """A file with gates beside doctest.h alone; they take turns, so that a slow minute hits them alike."""
    files = {"doctest.h alone": "#include <doctest/doctest.h>\n", "llmbench.hpp, no gate": '#include "llmbench.hpp"\n',
             "three gates": Path("tests/structure/three_gates.cpp").read_text(encoding="utf-8")}
    rounds = [[cost(text, "-O0")[0] for text in files.values()] for _ in range(5)]
    for (name, text), seconds in zip(files.items(), least(rounds)):
        read = subprocess.run([*CXX, "-std=c++20", "-I.", "-E", "-x", "c++", "-"], input=text.encode(), check=True,
                              capture_output=True).stdout
        print(f"| {name} | {len(read):,} | {seconds:.3f} |")


def least(costs):
    return tuple(map(min, zip(*costs)))


def compiled(levels, held=None):
    """Columns of the header's row. The second of two measurements is left out where the first is within `held`."""
    unit = least([cost(DOCTEST, "-O1") for _ in range(2)])[0]
    numbers = {}
    for level in levels:
        seconds, peak = cost(MAIN, level)
        if not held or too_much(level, seconds / unit, held) or too_much("peak MB", peak, held):
            seconds, peak = least([(seconds, peak), cost(MAIN, level)])
        numbers[level] = seconds / unit
        if level == USUAL:
            numbers["peak MB"], numbers["seconds"] = peak, seconds
    return numbers


def too_much(column, number, held):
    return column in held and number > held[column] * MAY_GROW.get(column, 1.03)


def grown(now, before):
    """A sentence for each number that grew too much."""
    for name, numbers in now.items():
        if name not in before:
            yield f"{PAGE} has no row for {name}: {row_of(name, numbers)}"
            continue
        held = before[name]
        for column, number in numbers.items():
            if too_much(column, number, held):
                what = {USUAL: f"times doctest's own main at -O1 to compile at {USUAL}"}.get(column, column)
                yield (f"{name}: {number:,.5g} {what}, {100 * (number / held[column] - 1):.1f} % more than the "
                       f"{held[column]:,.5g} in {PAGE}. Take something out, or say in the commit why it must grow "
                       f"and write the new row: {COMMAND}{'' if column in ('lines', 'bytes') else ' --compile'}\n"
                       f"    {row_of(name, held | numbers)}")


def with_cost_line(row, seconds=None):
    """README.md's words for it, with the time that stands there where none was measured."""
    page = Path("README.md").read_text(encoding="utf-8")
    line = COST.search(page)
    if not line:
        sys.exit("README.md has no row that says what it costs to compile `main.o`, up to \"; `-O2`\"")
    took = f"about {5 * max(1, round(seconds / 5))} s" if seconds else line[0].split("| ")[1].split(" and ")[0]
    level = USUAL if USUAL in row else "-O1"  # until it was measured
    words = f"{took} and {row['peak MB'] / 1000:.1f} GB of memory with `{level}` ({row[level]:.0f} times as long as doctest's own main)"
    return page, COST.sub(lambda m: m[1] + words + m[2], page)


def write(before, compile_it):
    now = sizes()
    text = PAGE.read_text(encoding="utf-8")
    if compile_it:
        now[HEADER] |= compiled(["-O0", USUAL, "-O1", "-O2"])
        text = re.sub(r"(`LLMBENCH_MAIN` with )\S+ \d+", lambda m: m[1] + compiler(), text)
        _, page = with_cost_line(now[HEADER], now[HEADER]["seconds"])
        Path("README.md").write_text(page, encoding="utf-8")
    for name, numbers in now.items():
        row = row_of(name, before.get(name, {}) | numbers)
        if name in before:
            text = re.sub(rf"^\| {re.escape(name)} \|.*$", row, text, flags=re.M)
        else:  # a new one
            text = re.sub(rf"^\| {re.escape(SOURCE)} \|", f"{row}\n| {SOURCE} |", text, flags=re.M)
        print(row)
    PAGE.write_text(text, encoding="utf-8")


def main(how):
    if "--gates" in how:
        return gates()
    before, measured_by = table()
    if "--write" in how:
        return write(before, "--compile" in how)
    now = sizes()
    if "--compile" in how:
        if compiler() != measured_by:
            print(f"{PAGE} is of {measured_by}, and this is {compiler()}: nothing is compared")
            return 77
        measured = compiled([USUAL], before[HEADER])
        now[HEADER] |= {c: measured[c] for c in (USUAL, "peak MB")}
        print(row_of(HEADER, before[HEADER] | now[HEADER]))
    wrong = list(grown(now, before))
    page, wanted = with_cost_line(before[HEADER])
    if page != wanted:
        wrong.append(f"README.md does not say what {PAGE} does: {COST.search(wanted)[0]}")
    if wrong:
        print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
