#!/usr/bin/env python3
"""Puts the parts in src/ together into llmbench.hpp, the one header that users take, and those in
src/extensions/NAME/ into extensions/llmbench_NAME.hpp, which some take beside it.

    ci/assemble.py                 writes llmbench.hpp and the extensions
    ci/assemble.py --all FILE      writes all of them as one file, which a release has as llmbench_all.hpp
    ci/assemble.py --check         exits with 1 where one of them is not what src/ gives, and says
                                   in which part the first difference lies
    ci/assemble.py --embed DIR     writes the files that parts embed (style.css as style.css.inc)
                                   below DIR, for a compiler that reads the parts themselves, and
                                   llmbench_NAME.hpp, which includes an extension's parts there

A part begins with what the table of contents says of it, and with what it includes:

    // random numbers
    // More about the section, which then stands below its banner.
    #pragma once

    #include "core/base/text.hpp"

    #include <cmath>  // what for

Includes up to the first line of another kind are gathered at the top of the zone. Those inside #if
or behind a #define stay where they are, for what stands around them may matter. In a root, the line
with the licence's SPDX name is followed by the text of LICENSE.
"""
import argparse
import re
import sys
from pathlib import Path

ROOT = "llmbench.hpp"

# The floors of the house. A part includes parts of its own floor and of those listed before it. The
# letter is the zone of the header that a floor belongs to, each with a guard of its own, and the
# letter of its tags. Bodies are no part of the core's zone: they are not inline.
FLOORS = {
    "api": "A",
    "core/base": "C",
    "core/metric": "C",
    "core/wire": "C",
    "core/server_metrics": "C",
    "core/dialects": "C",
    "core/answers": "C",
    "core/measured": "C",
    "core/traffic": "C",
    "core/judging": "C",
    "core/described": "C",
    "core/files": "C",
    "core/planning": "C",
    "core/figures": "C",
    "core/stored": "C",
    "core/reports": "C",
    "core/reports/page": "C",
    "core/bodies": "E",
    "effects/system": "E",
    "effects/net": "E",
    "effects/load": "E",
    "effects/targets": "E",
    "effects/gates": "E",
    "effects": "E",
}
# The client and the judge do not see each other, nor by way of others: what a folder's parts may not reach. A client
# that knows objectives, data sets or reports is compiled, read and broken with them.
JUDGE = ("core/judging", "core/described", "core/figures", "core/stored", "core/reports")
UNSEEN = {
    "core/traffic": (*JUDGE, "core/files"),
    "core/judging": ("core/traffic", "core/files"),
    "core/described": ("core/traffic", "core/files"),
    "effects/net": (*JUDGE, "core/files"),
    "effects/load": (*JUDGE, "core/files"),
    "effects/targets": JUDGE,
}
ZONES = "ACE"  # in the order in which src/llmbench.hpp says "Part one", "Part two", "Part three"

# src/extensions/NAME.hpp is the root of an extension, and its parts are below src/extensions/NAME/:
# they may use all that llmbench.hpp has, and nothing there may use them. They have no floors. Those
# of declarations are reached before `#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS)`; below core/ the core's rules
# hold.
EXTENSIONS = "extensions"
EVERYTHING = "all"  # llmbench_all.hpp, of a release
PROGRAM = "program"  # compiled beside the header, no part of it

# Every file with gates pays for what api/ includes. The core does no I/O, knows no clock and has no
# threads, and its includes are where it would show. <cctype> asks the locale of the program.
API_MAY_INCLUDE = {"cfloat", "initializer_list", "doctest/doctest.h"}
CORE_MAY_NOT_INCLUDE = re.compile(
    r"atomic|barrier|cctype|chrono|condition_variable|ctime|filesystem|fstream|future|iostream|"
    r"istream|latch|mutex|ostream|semaphore|shared_mutex|stop_token|syncstream|thread|time\.h|"
    r"(asio|openssl|sys|netinet|arpa)/.*|(fcntl|netdb|poll|pthread|signal|unistd)\.h")

COLUMNS = 100
QUOTED = re.compile(r'#include "([^"]+)"$')
SYSTEM = re.compile(r"\s*#\s*include <([^>]+)>(?:\s*// (.*))?$")
OPENED = re.compile(r"((?:inline )?namespace \w+) \{$")
CLOSED = re.compile(r"\}  // ((?:inline )?namespace \w+)$")


class Refused(Exception):
    """One sentence about what is wrong in src/."""


def without_blank_ends(lines):
    filled = [i for i, line in enumerate(lines) if line]
    return lines[filled[0]:filled[-1] + 1] if filled else []


class Part:
    """One file of src/, taken apart."""

    def __init__(self, src, name, zone=None):
        self.name = name
        folder = str(Path(name).parent)
        self.extension = extension_of(name)
        if not self.extension and folder not in FLOORS:
            raise Refused(f"{name} is on no floor: {folder} is not among those of ci/assemble.py")
        self.folder, self.reached = folder, {name}
        self.floor = 0 if self.extension else list(FLOORS).index(folder)
        self.zone = zone or FLOORS[folder]
        self.embeds = []  # files that stand in the part as a literal
        lines = (src / name).read_text().splitlines()
        if "#pragma once" not in lines or not lines[0].startswith("// "):
            raise Refused(f"{name} does not begin with a comment on what it is and #pragma once")
        for number, line in enumerate(lines, 1):
            if not self.extension and len(line.encode()) > COLUMNS:
                raise Refused(f"{name}:{number} has {len(line.encode())} columns: {COLUMNS} are allowed")
        pragma = lines.index("#pragma once")
        self.title, self.notes = lines[0][3:], lines[1:pragma]
        self.includes, self.system = [], []
        at = pragma + 1
        while at < len(lines):
            quoted, system = QUOTED.match(lines[at]), SYSTEM.match(lines[at])
            if quoted:
                self.includes.append(quoted[1])
            elif system:
                self.system.append((system[1], system[2] or ""))
            elif lines[at]:
                break
            at += 1
        body = without_blank_ends(lines[at:])
        self.check_system_includes(body)
        # The namespaces that are open at both ends may be joined with those of the neighbours.
        self.opens, self.closes = [], []
        while body and (opened := OPENED.match(body[0])):
            self.opens.append(opened[1])
            del body[0]
        while body and (closed := CLOSED.match(body[-1])):
            self.closes.append(closed[1])
            del body[-1]
        self.body = self.with_embedded(src, without_blank_ends(body))

    def see(self, used):
        """Takes over what an included part reaches."""
        self.reached |= used.reached
        for other in sorted(used.reached):
            side = str(Path(other).parent)
            if side in UNSEEN.get(self.folder, ()):
                way = "" if other == used.name else f" by way of {used.name}"
                raise Refused(f"{self.name} includes {other}{way}: {self.folder} does not see {side}")

    def check_system_includes(self, body):
        in_place = [m[1] for m in map(SYSTEM.match, body) if m]
        for header in [h for h, _ in self.system] + in_place:
            if self.zone == "A" and header not in API_MAY_INCLUDE:
                raise Refused(f"{self.name} includes <{header}>, "
                              "which every file with gates would pay for")
            if re.match(rf"(?:{EXTENSIONS}/\w+/)?core/", self.name) and CORE_MAY_NOT_INCLUDE.fullmatch(header):
                raise Refused(f"{self.name} includes <{header}>: the core does no I/O, knows no "
                              "clock and has no threads")

    def with_embedded(self, src, body):
        out = []
        for line in body:
            quoted = QUOTED.match(line)
            if not quoted:
                # The end of `= <literal> ;`, which three lines say where the part stands alone.
                if out and line.strip() == ";":
                    out[-1] += ";"
                else:
                    out.append(line)
                continue
            if not quoted[1].endswith(".inc"):
                raise Refused(f"{self.name} includes {quoted[1]} in its middle: "
                              "the includes of a part stand at its top")
            self.embeds.append(quoted[1].removesuffix(".inc"))
            first, *others = literal(src, self.embeds[-1]).split("\n")
            out[-1:] = [f"{out[-1]} {first}", *others]
        return out


def literal(src, name):
    """A file as a raw string literal: R"css( and a new line, its text, )css"."""
    kind, text = Path(name).suffix[1:], (src / name).read_text()
    if f'){kind}"' in text:
        raise Refused(f'{name} holds ){kind}", which ends the literal that it becomes')
    return f'R"{kind}(\n{text}){kind}"'


def extension_of(name):
    """The extension that a part belongs to, or None."""
    below = Path(name).parts
    return below[1] if below[0] == EXTENSIONS and len(below) > 2 else None


def read_parts(src, root=ROOT, of_header=()):
    """All parts that a root reaches, in the order of the floors; on one floor as the includes reach
    them, depth first, so that each stands below what it uses. `of_header` are the names of those
    that llmbench.hpp has, where the root is an extension's."""
    order, parts, trail = [], {}, []
    extension = Path(root).stem if root != ROOT else None
    zone = "A" if extension else None

    def reach(name, user):
        other = extension_of(name)
        if other != extension and other:
            raise Refused(f"{user} includes {name}: only {EXTENSIONS}/{other}.hpp may")
        if extension and not other:
            if name not in of_header:
                raise Refused(f"{user} includes {name}, which llmbench.hpp does not have: what an "
                              f"extension alone needs is below src/{EXTENSIONS}/{extension}/")
            if zone == "A" and not name.startswith("api/"):
                raise Refused(f"{user} includes {name}, which every file with gates would pay for")
            return
        if name in trail:
            circle = ", which includes ".join(trail[trail.index(name):] + [name])
            raise Refused(f"the includes run in a circle: {circle}")
        if name not in parts:
            if not (src / name).is_file():
                raise Refused(f"{user} includes {name}, which is not in src/")
            parts[name] = Part(src, name, zone)
            trail.append(name)
            for used in parts[name].includes:
                reach(used, name)
                if used in parts:  # else one of llmbench.hpp, for an extension
                    parts[name].see(parts[used])
            trail.pop()
            order.append(parts[name])
        if user in parts and parts[name].floor > parts[user].floor:
            raise Refused(f"{user} includes {name}, whose floor comes after its own")

    for line in (src / root).read_text().splitlines():
        if extension and re.match(r"#if.*\bLLMBENCH_IMPLEMENT_EXTENSIONS\b", line):
            zone = "E"
        if quoted := QUOTED.match(line):
            reach(quoted[1], root)
    reached = {root, *parts, *(e for part in order for e in part.embeds)}
    for path in sorted((src / EXTENSIONS / extension if extension else src).rglob("*")):
        name = path.relative_to(src).as_posix()
        apart = not extension and Path(name).parts[0] in (EXTENSIONS, PROGRAM)
        if path.is_file() and name not in reached and not apart and path.suffix != ".md":
            raise Refused(f"{name} is reached by nothing: no part includes it, nor does {root}")
    order.sort(key=lambda part: part.floor)
    for part in order:
        part.tag = f"[{part.zone}]"  # a number would change in all that follow a new part
    return order


def system_includes(parts, there):
    """Each header once, with all that the parts want of it. `there` are those that a zone above has
    included already, and takes the new ones."""
    wanted = {}
    for part in parts:
        for header, why in part.system:
            reasons = wanted.setdefault(header, [])
            reasons += [r for r in why.split(", ") if r and r not in reasons]
    groups = {True: [], False: []}  # the standard library's, then all others
    for header in sorted(set(wanted) - there):
        line, reasons = f"#include <{header}>", wanted[header]
        for i, reason in enumerate(reasons):
            longer = line + (", " if i else "  // ") + reason
            if len(longer) > COLUMNS - (len(", ...") if i + 1 < len(reasons) else 0):
                line += ", ..."
                break
            line = longer
        groups["/" not in header and "." not in header].append(line)
    there |= set(wanted)
    return [line for g in (True, False) if groups[g] for line in ["", *groups[g]]]


def zone_text(parts, there):
    """The parts of one zone as (lines, name of the part or None)."""
    out = [(system_includes(parts, there), None)]
    open_now = []
    for part in parts:
        shared = 0
        while shared < min(len(open_now), len(part.opens)) and \
                open_now[shared] == part.opens[shared]:
            shared += 1
        banner = f"// ===== {part.tag} {part.title} "
        if len(banner) + 3 > COLUMNS:
            raise Refused(f"{part.name} says too much in its first line for a banner")
        between = [f"}}  // {n}" for n in reversed(open_now[shared:])]
        opening = [f"{n} {{" for n in part.opens[shared:]]
        lines = [""] + (between + [""] if between else [])
        lines += [banner + "=" * (COLUMNS - len(banner)), *part.notes, ""]
        lines += opening + ([""] if opening and part.body else []) + part.body
        out.append((lines, part.name))
        open_now = part.closes
    out.append(([""] + [f"}}  // {n}" for n in reversed(open_now)] + [""], None))
    return out


def version_of(src):
    """ 1.0.0-rc.1, after a blank, as its part states it; empty where a tree has no such part."""
    path = src / "api" / "version.hpp"
    stated = re.findall(r'^#define LLMBENCH_VERSION_(\w+) "?([^"\s]*)',
                        path.read_text() if path.is_file() else "", re.MULTILINE)
    pre = "".join(f"-{value}" for name, value in stated if name == "PRE" and value)
    numbers = ".".join(value for name, value in stated if name != "PRE")
    return f" {numbers}{pre}" if numbers else ""


def same_release(src, name):
    """Refuses an extension beside an llmbench.hpp of another version. The macro is of api/linking.hpp."""
    version = version_of(src).strip()
    if not version:
        return []
    return [f'static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_{version.replace("-", "")}") == 0,',
            f'              "llmbench_{name}.hpp is of {version}, but llmbench.hpp is " LLMBENCH_RELEASE_',
            '              ": take both from one release");']


def licence_of(src):
    """LICENSE without its title, which the line with its SPDX name replaces, as comments."""
    path = src.parent / "LICENSE"
    lines = path.read_text().splitlines()[1:] if path.is_file() else []
    return [f"// {line}".rstrip() for line in lines]


def put_together(src, root=ROOT, of_header=()):
    """A header as (lines, name of the part they come from), and its parts."""
    parts = read_parts(src, root, of_header)
    of_zone = {zone: [p for p in parts if p.zone == zone] for zone in ZONES}
    texts, there = {}, set()
    for zone in ZONES:
        texts[zone] = zone_text(of_zone[zone], there)
    numbers, done, out = iter(ZONES), set(), []
    version = version_of(src)
    for i, line in enumerate((src / root).read_text().splitlines()):
        quoted = QUOTED.match(line)
        if quoted:
            # The first include of a zone stands for all of it.
            zone = next(p.zone for p in parts if p.name == quoted[1])
            if root != ROOT and not done:
                out.append((same_release(src, Path(root).stem), root))
            if zone not in done:
                out += texts[zone]
            done.add(zone)
            continue
        out.append(([line if i else line.replace(":", f"{version}:", 1)], root))
        if i == 0:
            out.append((["// Put together from src/ by ci/assemble.py: edit there, not here."], root))
        if line.startswith("// SPDX-License-Identifier: "):
            out.append((licence_of(src), root))
        if re.match(r"// Part \w+: ", line):
            contents = [f"//   {p.tag} {p.title}" for p in of_zone[next(numbers)]]
            out.append((contents, root))
    return out, parts


def with_numbers_of_lines(blocks):
    """Says where the implementation begins, and how long it is: BEGINS and LINES in src/llmbench.hpp."""
    lines = [line for block, _ in blocks for line in block]
    begins = [i for i, line in enumerate(lines) if line.startswith("// ===== the implementation: LINES ")]
    if not begins:
        return blocks
    values = {"LINES": f"{len(lines) - begins[0] - 1:,}", "BEGINS": str(begins[0] + 1)}

    def filled(line):
        if not line.startswith("//"):
            return line
        said = re.sub(r"\b(LINES|BEGINS)\b", lambda m: values[m[0]], line)
        return said.rstrip("=").ljust(COLUMNS, "=") if line.startswith("// ===== the implementation") else said

    return [([filled(line) for line in block] if name == ROOT else block, name) for block, name in blocks]


def all_headers(src, header):
    """What is put together: the path, the blocks and the parts of each. The core must not know an
    extension, so it is read first and alone."""
    blocks, parts = put_together(src)
    made = [(header, with_numbers_of_lines(blocks), parts)]
    of_header = {part.name for part in parts}
    for root in sorted((src / EXTENSIONS).glob("*.hpp")):
        name = root.relative_to(src).as_posix()
        path = header.parent / EXTENSIONS / f"llmbench_{root.stem}.hpp"
        made.append((path, *put_together(src, name, of_header)))
    return made


def everything(src, made):
    """The same headers as one file, for who wants one copy and no choice; its parts are theirs."""
    name = f"llmbench_{EVERYTHING}"
    banner = f"// {name}{version_of(src)}: llmbench.hpp and all of its extensions in one file."
    beside = ["", "#ifdef LLMBENCH_HPP", *same_release(src, EVERYTHING), "#endif", ""]
    blocks = [block for _, blocks, _ in made for block in [*blocks, ([""], None)]]
    return [([banner, *beside], None), *blocks[:-1]]


def check(header, blocks):
    """Empty where the header is what src/ gives, else the first difference."""
    have = header.read_text().splitlines() if header.is_file() else []
    want = [(line, name) for lines, name in blocks for line in lines]
    for number, (line, name) in enumerate(want, 1):
        if number > len(have) or have[number - 1] != line:
            found = have[number - 1] if number <= len(have) else "(the end of the file)"
            return (f"{header.name}:{number} is not what src/{name or ROOT} gives\n"
                    f"  in src/: {line}\n  there:   {found}")
    return "" if len(have) == len(want) else f"{header.name} goes on where src/ ends"


def text_of(blocks):
    return "".join(line + "\n" for lines, _ in blocks for line in lines)


def write_if_changed(path, text):
    """So that nothing is compiled again for a file that says what it said before."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    project = Path(__file__).resolve().parent.parent
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--check", action="store_true", help="compare, write nothing")
    options.add_argument("--all", type=Path, metavar="FILE", help="write all of them as one file alone")
    options.add_argument("--embed", type=Path, metavar="DIR", help="write embedded files alone")
    options.add_argument("--src", type=Path, default=project / "src", help="where the parts are")
    options.add_argument("--header", type=Path, default=project / ROOT, help="what is put together; the extensions go beside it")
    options = options.parse_args()
    try:
        made = all_headers(options.src, options.header)
        if options.embed:
            for name in (e for _, _, parts in made for part in parts for e in part.embeds):
                write_if_changed(options.embed / f"{name}.inc", literal(options.src, name) + "\n")
            for header, _, _ in made[1:]:
                of_parts = header.stem.removeprefix("llmbench_")
                write_if_changed(options.embed / header.name,
                                 f'#include "{EXTENSIONS}/{of_parts}.hpp"\n')
            return
        if options.all:
            write_if_changed(options.all, text_of(everything(options.src, made)))
            return
        for header, blocks, _ in made:
            if options.check:
                if difference := check(header, blocks):
                    sys.exit(f"{difference}\nrun ci/assemble.py, or take the edit over into src/")
            else:
                write_if_changed(header, text_of(blocks))
        there = {path for path, _, _ in made}
        for path in sorted((options.header.parent / EXTENSIONS).glob("llmbench_*.hpp")):
            if path not in there and options.check:
                sys.exit(f"{path.name} is of no src/{EXTENSIONS}/: delete it")
            if path not in there:
                path.unlink()
    except Refused as why:
        sys.exit(f"ci/assemble.py: {why}")


if __name__ == "__main__":
    main()
