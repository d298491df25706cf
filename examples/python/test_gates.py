"""A test for each gate of gates.toml: passed, failed, skipped, or xfailed where it is inconclusive."""
import json
import os
import pathlib
import subprocess

import llmbench
import pytest

from conftest import REPORTS

FILE = pathlib.Path(__file__).with_name("gates.toml")


def gates():
    """The names of all gates; a file that is refused fails here, with its sentence."""
    told = subprocess.run([llmbench.path(), "explain", FILE, "--json"], capture_output=True, text=True)
    if told.returncode != 0:
        pytest.exit(told.stderr, returncode=2)
    return [gate["name"] for gate in json.loads(told.stdout)["gates"]]


@pytest.mark.parametrize("number, name", list(enumerate(gates())))
def test_gate(number, name, server):
    report = REPORTS / str(number)
    run = subprocess.run([llmbench.path(), "run", "--config", FILE, "--gate", name, "--report", report],
                         env={**os.environ, "LLMBENCH_URL": server}, capture_output=True, text=True)
    print(run.stdout, run.stderr)
    if run.returncode == 77:
        pytest.skip("no verdict was asked for")
    assert run.returncode == 0, f"1: missed, 2: refused, 3: invalid; see {report}/report.html"
    gate = json.loads((report / "result.json").read_text())["gates"][0]
    if any(slo["verdict"] == "inconclusive" and not slo["advisory"] for slo in gate["slos"]):
        pytest.xfail(f"inconclusive: see {report}/report.html")
