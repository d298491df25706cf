"""pytest and llmbench: a server for all tests, and one junit.xml. guides/pytest.md has the rest."""
import os
import pathlib
import socket
import subprocess
import xml.etree.ElementTree as xml

import llmbench
import pytest

SERVER = [llmbench.path(), "serve", "--slots", "32", "--port", "{port}"]  # or ["vllm", "serve", MODEL, "--port", "{port}"]
REPORTS = pathlib.Path("llmbench-report")


@pytest.fixture(scope="session")
def server():
    """The server's URL: LLMBENCH_URL, or a server that is started, and ended after the last test."""
    if os.environ.get("LLMBENCH_URL"):
        yield os.environ["LLMBENCH_URL"]
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([word.replace("{port}", str(port)) for word in SERVER])
    yield f"http://127.0.0.1:{port}"  # ready-within in gates.toml waits for it
    process.terminate()
    process.wait(60)


def pytest_unconfigure(config):
    """The objectives of each gate, in the file of --junitxml."""
    if not config.getoption("xmlpath", None) or not os.path.exists(config.option.xmlpath):
        return
    all_tests = xml.parse(config.option.xmlpath)
    for report in sorted(REPORTS.glob("*/junit.xml")):
        all_tests.getroot().extend(xml.parse(report).getroot().iter("testsuite"))
    all_tests.write(config.option.xmlpath, encoding="utf-8", xml_declaration=True)
