"""pytest and llmbench: a test for each gate of a file, `pytest gates.toml`.

    pytest gates.toml --llmbench-server 'vllm serve MODEL --port {port}' --junitxml=junit.xml

A gate sends a load, so a file of gates is collected only where it is named: on the command line, or by
`llmbench_gates = perf/gates.toml` in pytest's settings. Gates of several workers (pytest-xdist) wait for each
other, and no plugin runs a gate again until it is green.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import time
import xml.etree.ElementTree as xml

import pytest
from _pytest.runner import runtestprotocol

import llmbench

EXIT_CODES = "1: missed, 2: refused, 3: invalid"
REPORT = "llmbench_report"  # the property of a test that has the folder of its report


def pytest_addoption(parser):
    group = parser.getgroup("llmbench")
    group.addoption("--llmbench-server", metavar="COMMAND",
                    help="starts the server for all gates; {port} in it becomes a free port. Default: the file's url "
                         "or command, or LLMBENCH_URL")
    group.addoption("--llmbench-ready", metavar="SECONDS", type=float, default=600,
                    help="how long that server may take until it listens (600)")
    group.addoption("--llmbench-report", metavar="FOLDER", default="llmbench-report",
                    help="where reports go, a folder for each gate (llmbench-report)")
    parser.addini("llmbench_gates", "files of gates that are collected without being named", type="paths", default=[])
    parser.addini("llmbench_server", "as --llmbench-server", default="")


class Server:
    """The server of all gates: started with the first one, ended with the session."""

    def __init__(self, command, ready_s):
        self.command, self.ready_s = command, ready_s
        self.process = self.url = None
        self.log = tempfile.TemporaryFile()

    def start(self):
        """Returns its URL once it listens; fails at once if it has ended."""
        if self.process is None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            words = [w.replace("{port}", str(port)) for w in shlex.split(self.command)]
            self.process = subprocess.Popen(words, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
            self.url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + self.ready_s
            while not self.listens(port) and self.how_it_ended() is None:
                if time.monotonic() > until:
                    pytest.fail(f"the server does not listen after {self.ready_s:g} s: {self.command}", pytrace=False)
                time.sleep(0.1)
        if (how := self.how_it_ended()) is not None:
            pytest.fail(how, pytrace=False)
        return self.url

    @staticmethod
    def listens(port):
        with socket.socket() as there:
            there.settimeout(1)
            return there.connect_ex(("127.0.0.1", port)) == 0

    def how_it_ended(self):
        """Returns why it is gone, with the end of what it said; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        self.log.seek(max(0, self.log.seek(0, os.SEEK_END) - 2000))
        said = self.log.read().decode(errors="replace").strip()
        return f"the server has ended with {code}: {self.command}\n{said}"

    def end(self):
        process, self.process = self.process, None
        if process is None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
                return


class Gates:
    """What the plugin knows of this session."""

    def __init__(self, config):
        command = config.getoption("llmbench_server")
        if not command and not os.environ.get("LLMBENCH_URL"):
            command = config.getini("llmbench_server")
        self.server = Server(command, config.getoption("llmbench_ready")) if command else None
        self.folder = pathlib.Path(config.getoption("llmbench_report")).absolute()
        self.reports = []  # of the gates that ran today


KEY = pytest.StashKey()


def pytest_configure(config):
    config.stash[KEY] = Gates(config)


def pytest_collect_file(file_path, parent):
    named = [pathlib.Path(str(a).split("::")[0]) for a in parent.config.args]
    named += parent.config.getini("llmbench_gates")
    if file_path.suffix == ".toml" and any(n.absolute() == file_path for n in named):
        return GatesFile.from_parent(parent, path=file_path)


class GatesFile(pytest.File):
    def collect(self):
        told = subprocess.run([llmbench.path(), "explain", str(self.path), "--json"], capture_output=True, text=True)
        if told.returncode != 0:  # one sentence for each mistake; what could not be modelled stands in the text
            said = subprocess.run([llmbench.path(), "explain", str(self.path)], capture_output=True, text=True)
            raise self.CollectError((told.stderr or said.stdout or told.stdout).strip())
        for number, gate in enumerate(json.loads(told.stdout)["gates"]):
            yield Gate.from_parent(self, name=gate["name"], number=number)


class GateFailed(Exception):
    pass


class Gate(pytest.Item):
    def __init__(self, *, number, **more):
        super().__init__(**more)
        self.number = number
        self.said = ""

    def runtest(self):
        gates = self.config.stash[KEY]
        report = gates.folder / f"{self.path.stem}-{self.number}"
        self.user_properties.append((REPORT, str(report)))
        gates.folder.mkdir(parents=True, exist_ok=True)
        with open(gates.folder / ".one-at-a-time", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                (report / "junit.xml").unlink()  # an earlier run's
            try:
                code = self.run(gates, report)
            finally:  # the next worker starts one of its own
                if gates.server and hasattr(self.config, "workerinput"):
                    gates.server.end()
        if code == 77:
            pytest.skip("no verdict was asked for")
        if code != 0:
            page = report / "report.html"
            seen = f"; see {page}" if page.exists() else f":\n{self.said}"
            raise GateFailed(f"llmbench ends with {code} ({EXIT_CODES}){seen}")
        gate = json.loads((report / "result.json").read_text())["gates"][0]
        if any(slo["verdict"] == "inconclusive" and not slo["advisory"] for slo in gate["slos"]):
            pytest.xfail(f"inconclusive: see {report}/report.html")

    def run(self, gates, report):
        command = [llmbench.path(), "run", "--config", str(self.path), "--gate", self.name, "--report", str(report)]
        more = {"LLMBENCH_URL": gates.server.start()} if gates.server else {}
        gate = subprocess.Popen(command, env={**os.environ, **more}, cwd=self.config.invocation_params.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        gone = None
        while True:
            try:
                said, _ = gate.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                # A gate may wait for a server that comes back, and this one does not.
                if gone is None and gates.server and (gone := gates.server.how_it_ended()):
                    gate.send_signal(signal.SIGTERM)
            except KeyboardInterrupt:  # the gate has heard it, too, and writes its reports
                with contextlib.suppress(subprocess.TimeoutExpired):
                    gate.wait(30)
                raise
        if gates.server:  # the program's own command names no server
            said = re.sub("; run again: .*", lambda _: f"; run again: {self.again()}", said)
        self.said = said
        print(said)
        if gone:
            raise GateFailed(gone)
        return gate.returncode

    def again(self):
        """Returns the command that runs this gate again, with its server."""
        here = os.path.relpath(self.path, self.config.invocation_params.dir)
        server = self.config.getoption("llmbench_server")
        if server and re.search("key|token|secret|password", server, re.IGNORECASE):
            server = "..."  # what is printed may be read by others
        return shlex.join(["pytest", f"{here}::{self.name}"] + (["--llmbench-server", server] if server else []))

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, GateFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, f"gate: {self.name}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """A gate runs once: a verdict that is tried until it is green has no error level."""
    if not isinstance(item, Gate):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class Collected:
    """Takes the reports of this session, those of other workers, too."""

    def __init__(self, gates):
        self.gates = gates

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.gates.reports += [pathlib.Path(p) for name, p in report.user_properties if name == REPORT]


def pytest_sessionstart(session):
    session.config.pluginmanager.register(Collected(session.config.stash[KEY]))


def pytest_unconfigure(config):
    """Ends the server, and adds the objectives of each gate to the file of --junitxml."""
    gates = config.stash.get(KEY, None)
    if gates is None:
        return
    if gates.server:
        gates.server.end()
    path = getattr(config.option, "xmlpath", None)
    if hasattr(config, "workerinput") or not path or not gates.reports or not os.path.exists(path):
        return
    all_tests = xml.parse(path)
    for report in gates.reports:
        if (report / "junit.xml").exists():
            all_tests.getroot().extend(xml.parse(report / "junit.xml").getroot().iter("testsuite"))
    all_tests.write(path, encoding="utf-8", xml_declaration=True)
