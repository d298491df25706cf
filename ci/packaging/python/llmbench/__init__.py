"""The program llmbench: performance gates for LLM inference servers.

`path()` is where it is: `subprocess.run([llmbench.path(), "run", "--config", "gates.toml"])`.
"""
import os
import sys

__version__ = "@VERSION@"


def path():
    """Returns the program's path."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "llmbench")


def main():
    """Becomes the program: its exit code and its signals are those of the caller's process."""
    try:
        os.execv(path(), ["llmbench", *sys.argv[1:]])
    except PermissionError:
        # Some unpack a wheel as an archive and lose the modes of its files.
        print("llmbench: {} may not be executed, as its wheel was unpacked without the files' modes: "
              "chmod +x, or pip install".format(path()), file=sys.stderr)
        sys.exit(2)
