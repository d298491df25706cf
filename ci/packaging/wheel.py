"""Makes a wheel of the program llmbench, for `pip install`, `uvx` and `pipx`.

    wheel.py [--prefix INSTALLED] PROGRAM FOLDER [LICENCES]      prints the wheel's path

A static program becomes a wheel for any Linux with its processor (manylinux and musllinux); any other is one
for machines like this (linux_ARCH), which no index takes. LICENCES: a file on what is linked into the
program. INSTALLED: what `cmake --install` with -DLLMBENCH_BUILD_ARCHIVE=ON has left, for `llmbench flags`. The
same files give the same bytes. Needs Python 3.8, and qemu-user for another processor's program.
"""
import base64
import hashlib
import platform
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

METADATA = '''Metadata-Version: 2.4
Name: llmbench
Version: {version}
Summary: Performance gates for LLM inference servers: tests that fail a build when a server is too slow
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Testing
Description-Content-Type: text/markdown

# llmbench

The program `llmbench` as one file, without dependencies:

```sh
llmbench run --url http://127.0.0.1:8000 --users 8 --slo 'p90(ttft) <= 500 ms'
llmbench explain gates.toml     # what gates can show, without a server
```

Gates in C++ compile in a second: `g++ -std=c++20 gates.cpp $(llmbench flags) -o gates`. The header, the doctest
that it was built with, and the compiled rest are in this wheel.

`pytest gates.toml` has a test for each gate of a file. `llmbench.path()` in Python says where the program is.
'''
ENTRY_POINTS = b"""[console_scripts]
llmbench = llmbench:main

[pytest11]
llmbench = llmbench.pytest_plugin
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: llmbench wheel.py\nRoot-Is-Purelib: false\n"
MACHINES = {62: "x86_64", 183: "aarch64"}


class Refused(Exception):
    pass


def machine_of(data, program):
    """The processor of an ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise Refused(f"{program} is no program of a 64-bit Linux")
    machine, = struct.unpack_from("<H", data, 18)
    if machine not in MACHINES:
        raise Refused(f"{program} is for processor {machine}: there are wheels for x86_64 and aarch64")
    return MACHINES[machine]


def platform_of(program):
    """The platform tags: by the processor, and whether the program asks for a dynamic loader."""
    data = program.read_bytes()
    name = machine_of(data, program)
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    is_static = all(struct.unpack_from("<I", data, start + i * size)[0] != 3 for i in range(count))  # PT_INTERP
    if not is_static:
        return f"linux_{name}"
    return f"manylinux_2_17_{name}.musllinux_1_1_{name}"


def version_of(program):
    """1.0.0-rc.1 as Python writes it, 1.0.0rc1."""
    machine = machine_of(program.read_bytes(), program)
    emulator = [] if machine == platform.machine() else [f"qemu-{machine}"]
    said = subprocess.run([*emulator, program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.fullmatch(r"llmbench (\d+\.\d+\.\d+)(?:-(rc)\.(\d+))?\n", said)
    if not found:
        raise Refused(f"{program} --version says {said!r}")
    return found[1] + (found[2] + found[3] if found[2] else "")


def files_of_cpp(installed):
    """What gates in C++ are compiled with, under the names that it has in the wheel."""
    if not installed:
        return []
    for needed in ("include/llmbench.hpp", "include/doctest/doctest.h", "lib/libllmbench.a", "lib/libllmbench_main.a"):
        if not (installed / needed).is_file():
            raise Refused(f"{installed} has no {needed}: install a build with -DLLMBENCH_BUILD_ARCHIVE=ON there")
    return [(f"llmbench/{path.relative_to(installed).as_posix()}", path.read_bytes(), 0o644)
            for part in ("include", "lib", "share")
            for path in sorted((installed / part).rglob("*")) if path.is_file()]


def write_wheel(program, folder, licences, installed=None):
    tags, version = platform_of(program), version_of(program)
    info = f"llmbench-{version}.dist-info"
    licence = Path(__file__).resolve().parents[2] / "LICENSE"
    package = Path(__file__).resolve().parent / "python" / "llmbench"
    files = [*((f"llmbench/{f.name}", f.read_bytes().replace(b"@VERSION@", version.encode()), 0o644)
               for f in sorted(package.glob("*.py"))),
             ("llmbench/bin/llmbench", program.read_bytes(), 0o755),
             *files_of_cpp(installed),
             (f"{info}/METADATA", METADATA.format(version=version).encode(), 0o644),
             (f"{info}/WHEEL", (WHEEL + "".join(f"Tag: py3-none-{p}\n" for p in tags.split("."))).encode(), 0o644),
             (f"{info}/entry_points.txt", ENTRY_POINTS, 0o644),
             (f"{info}/licenses/LICENSE", licence.read_bytes(), 0o644)]
    if licences:
        files.append((f"{info}/licenses/of-what-is-linked.txt", licences.read_bytes(), 0o644))
    record = ""
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"llmbench-{version}-py3-none-{tags}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, content)
    return path


def main(arguments):
    installed = None
    if len(arguments) > 1 and arguments[0] == "--prefix":
        installed, arguments = Path(arguments[1]).resolve(), arguments[2:]
    if len(arguments) not in (2, 3):
        sys.exit("usage: wheel.py [--prefix INSTALLED] PROGRAM FOLDER [LICENCES]")
    paths = [Path(a).resolve() for a in arguments]
    print(write_wheel(paths[0], paths[1], paths[2] if len(paths) > 2 else None, installed))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Refused, OSError) as e:
        sys.exit(f"wheel.py: {e}")
