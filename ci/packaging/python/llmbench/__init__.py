"""The program llmbench: performance gates for LLM inference servers.

`path()` is where it is: `subprocess.run([llmbench.path(), "run", "--config", "gates.toml"])`.
"""
import os
import sys

__version__ = "@VERSION@"


def path():
    """Returns the program's path. Some ways of unpacking a wheel lose the modes of its files."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "llmbench")
    if not os.access(program, os.X_OK):
        os.chmod(program, 0o755)
    return program


def main():
    """Becomes the program: its exit code and its signals are those of the caller's process."""
    os.execv(path(), ["llmbench", *sys.argv[1:]])
