"""A model of GitHub's runner: runs the first job of a workflow here, and the job `comment` after it
where there is one, each in a workspace and with a token of its own.

  workflow.py WORKFLOW WORKSPACE REPOSITORY HEAD BASE [REF]

WORKFLOW is a YAML file, or a page whose block of YAML names itself performance.yml. WORKSPACE is an
empty folder, REPOSITORY a git repository with the commits HEAD and BASE of pull request 7, or of what
was pushed to REF. Composite actions of the repository run as they stand; of the others, checkout is a
clone, and upload-artifact a copy to WORKSPACE/../artifacts. Exits with 1 where the job fails.

  EVENT          what started the workflow, schedule for one; else pull_request, or push with a REF
  SERVER_URL     where repositories are, https://github.test
  FORK           1: the token may not write
  CANCEL_WHEN    the job is cancelled once this file is there
  PATIENCE       how many times as long it waits for what is to end as GitHub's does, 1: for a busy machine

WORKSPACE/../commands has the commands that the runner took out of what the steps printed, and
WORKSPACE/../annotations what it shows of them.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import yaml

# Where its rules are written: actions/runner at 258d6c8, under src/Runner.Worker if nothing else is said;
# actions/checkout at f548e57; documentation pages of docs.github.com.
PATIENCE = float(os.environ.get("PATIENCE", "1"))
# ActionCommandManager.cs, and stop-commands
COMMANDS = {"set-env", "set-output", "save-state", "add-mask", "add-path", "add-matcher", "remove-matcher",
            "warning", "error", "notice", "debug", "group", "endgroup", "echo", "stop-commands"}


def hears_sigint():
    """Bash cannot trap what was ignored when it was started, as in a shell's `&`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Printed:
    """What a step of the job prints: lines for the log, and commands for the runner."""

    def __init__(self, beside):
        self.beside = beside
        self.token = None   # of stop-commands
        self.shown = {}     # annotations by kind
        self.rest = b""

    def take(self, some):
        self.rest += some
        *lines, self.rest = re.split(rb"\r\n|\r|\n", self.rest)  # ProcessInvoker.cs: .NET's ReadLine
        for line in lines:
            self.line(line.decode("utf-8", "replace"))

    def end(self):
        if self.rest:
            self.take(b"\n")

    def command(self, line):
        names = COMMANDS | ({self.token} if self.token else set())
        # Runner.Common/ActionCommand.cs, TryParseV2 and TryParse
        found = re.match(r"::([^\s:]+)([^:]*)::(.*)", line.lstrip())
        if not found or found[1].lower() not in names:
            found = re.search(r"##\[([^\s\]]+)([^\]]*)\](.*)", line)
        return (found[1].lower(), found[3]) if found and found[1].lower() in names else None

    def line(self, line):
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.flush()
        name, data = self.command(line) or (None, None)
        if self.token:
            self.token = None if name == self.token else self.token
            return
        if not name:
            return
        with open(os.path.join(self.beside, "commands"), "a", encoding="utf-8") as f:
            f.write(f"{name} {data}\n")
        if name == "stop-commands":
            self.token = data.lower()
        if name in ("error", "warning", "notice"):
            self.shown[name] = self.shown.get(name, 0) + 1
            if self.shown[name] <= 10:  # ExecutionContext.cs, AddIssue
                with open(os.path.join(self.beside, "annotations"), "a", encoding="utf-8") as f:
                    f.write(f"{name} {data}\n")


class Job:
    def __init__(self, described, name, workspace, repository, head, base, ref=""):
        job = described["jobs"][name]
        self.default_shell = described.get("defaults", {}).get("run", {}).get("shell")
        self.workspace = os.path.realpath(workspace)
        self.beside = os.path.dirname(self.workspace)
        self.repository, self.head = repository, head
        self.status = "success"
        self.matrix = {k: v[0] for k, v in job.get("strategy", {}).get("matrix", {}).items()}
        self.url = os.environ.get("SERVER_URL", "https://github.test")
        # docs, 'permissions': those of a job replace those of the workflow
        rights = job.get("permissions") or described.get("permissions") or {}
        if os.environ.get("FORK") == "1":
            rights = {"contents": "read"}
        self.may_comment = rights.get("pull-requests") == "write"
        name_of_event = os.environ.get("EVENT") or ("push" if ref else "pull_request")
        event = {"repository": {"default_branch": "main"}}
        if name_of_event == "schedule":  # it has no payload (github/codeql-action#1211)
            event = {"schedule": "0 3 * * *"}
        if name_of_event == "pull_request":
            event["pull_request"] = {"number": 7, "base": {"sha": base}, "head": {"sha": head}}
        self.github = {
            "workspace": self.workspace, "repository": "me/it", "server_url": self.url,
            "run_id": "1234", "ref": ref or "refs/pull/7/merge", "sha": head,
            "token": "may-" + "+".join(f"{what}-{right}" for what, right in sorted(rights.items())),
            "event_name": name_of_event, "event": event,
        }
        self.runner = {"temp": os.path.join(self.beside, "temp"), "arch": "X64"}
        os.makedirs(self.runner["temp"], exist_ok=True)
        self.tracking = f"github_{os.getpid()}_{name}"
        self.action_path = ""
        self.outputs = {}  # of steps that have an id
        self.printed = None
        self.env = {}
        self.env = {k: self.text(v, {}) for k, v in job.get("env", {}).items()}
        self.steps = job["steps"]

    def value(self, expression, inputs, status="success"):
        """What stands between ${{ and }}: names, strings, functions of the status, !,
        &&, || and ==."""
        known = {"github": self.github, "inputs": inputs, "runner": self.runner,
                 "matrix": self.matrix, "secrets": {"SERVER_KEY": ""}, "env": self.env,
                 "steps": {name: {"outputs": said} for name, said in self.outputs.items()}}
        cancelled = self.status == "cancelled"  # StepsRunner.cs: always() and cancelled() are true
        functions = {"always()": True, "cancelled()": cancelled,
                     "success()": status == "success" and not cancelled, "failure()": status == "failure"}

        def word(match):
            text = match.group(0)
            if text in ("not", "and", "or"):
                return text
            if text[0] == "'":
                return repr(text[1:-1])
            if text in functions:
                return repr(functions[text])
            at = known
            for part in text.split("."):
                at = at.get(part, "") if isinstance(at, dict) else ""
            return repr(at)

        # Operators first: a value may have them, too.
        for sign, name in (("!", " not "), ("&&", " and "), ("||", " or ")):
            expression = re.sub(rf"('[^']*')|{re.escape(sign)}(?!=)",
                                lambda m, name=name: m.group(1) or name, expression)
        return eval(re.sub(r"'[^']*'|[a-z_][\w.-]*(\(\))?", word, expression.strip()))

    def text(self, template, inputs):
        return re.sub(r"\$\{\{(.*?)\}\}",
                      lambda m: str(self.value(m.group(1).strip(), inputs)), str(template))

    def wanted(self, step, inputs, status):
        condition = str(step.get("if", "")).strip()
        condition = re.sub(r"^\$\{\{(.*)\}\}$", r"\1", condition).strip()
        asks = re.search(r"\b(always|cancelled|success|failure)\(\)", condition)
        # docs, 'Status check functions': without one, success() is meant as well
        implied = asks or self.value("success()", inputs, status)
        return bool(implied and (not condition or self.value(condition, inputs, status)))

    def run(self, steps, inputs, outer=None):
        """Of the job, or inside an action: `outer` is the env of the step that uses it. Returns the
        status."""
        status = "success"
        for step in steps:
            if outer is None:
                self.printed, status = Printed(self.beside), self.status
            if not self.wanted(step, inputs, status):
                continue
            print(f"## {step.get('name', step.get('uses', 'run'))}", flush=True)
            own = {k: self.text(v, inputs) for k, v in step.get("env", {}).items()}
            env = self.env | (outer or {}) | own  # StepsRunner.cs, CompositeActionHandler.cs
            still_wanted = lambda: self.wanted(step, inputs, status)
            if "run" in step:
                ok = self.shell(step, inputs, env, still_wanted)
            else:
                given = {k: self.text(v, inputs) for k, v in step.get("with", {}).items()}
                ok = self.action(step["uses"], given, (outer or {}) | own)
            if not ok and not step.get("continue-on-error"):
                status = "failure"
                if outer is None and self.status == "success":
                    self.status = "failure"
        return status

    def shell(self, step, inputs, env, still_wanted):
        script = os.path.join(self.runner["temp"], "step.sh")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.text(step["run"], inputs))
        files = {name: os.path.join(self.runner["temp"], name.lower() + "_file")
                 for name in ("ENV", "PATH", "OUTPUT", "STATE", "STEP_SUMMARY")}
        for file in files.values():
            open(file, "w", encoding="utf-8").close()
        context = {f"GITHUB_{k.upper()}": str(v) for k, v in self.github.items() if isinstance(v, str) and k != "token"}
        context |= {f"GITHUB_{name}": file for name, file in files.items()}
        context |= {"GITHUB_ACTION_PATH": self.action_path, "RUNNER_TEMP": self.runner["temp"],
                    "GITHUB_ACTIONS": "true", "CI": "true", "RUNNER_TRACKING_ID": self.tracking}
        env = os.environ | env | context  # ScriptHandler.cs, 'expose context to environment'
        for ours in ("CANCEL_WHEN", "PATIENCE", "MODEL_WITHOUT", "EVENT", "SERVER_URL", "FORK"):
            env.pop(ours, None)
        options = ["-e"]
        if step.get("shell", self.default_shell if not self.action_path else None) == "bash":
            options = ["-e", "-o", "pipefail"]  # ScriptHandlerHelpers.cs: if it is named
        process = subprocess.Popen(["bash", "--noprofile", "--norc", *options, script], cwd=self.workspace,
                                   env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, preexec_fn=hears_sigint)
        ok = self.followed(process, still_wanted)
        with open(files["OUTPUT"], encoding="utf-8") as f:
            said = f.read()
        if "id" in step:  # ActionRunner.cs: however the step ended
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in said.splitlines())
        with open(os.path.join(self.beside, "output"), "a", encoding="utf-8") as f:
            f.write(said)
        with open(files["ENV"], encoding="utf-8") as f:
            self.env |= dict(line.split("=", 1) for line in f.read().splitlines())
        with open(files["STEP_SUMMARY"], "rb") as f:
            summary = f.read()
        if len(summary) > 1024 * 1024:  # FileCommandManager.cs, CreateStepSummaryCommand
            self.printed.line("##[error]the summary of this step is too large")
        else:
            with open(os.path.join(self.beside, "step_summary.md"), "ab") as f:
                f.write(summary)
        return ok

    def followed(self, process, still_wanted):
        """Reads what it prints, and ends it where the job is cancelled. Returns whether all went well."""
        ended = threading.Event()

        def read():
            while some := os.read(process.stdout.fileno(), 65536):
                self.printed.take(some)
            self.printed.end()
            ended.set()
        threading.Thread(target=read, daemon=True).start()
        cancel = os.environ.get("CANCEL_WHEN")
        while process.poll() is None:
            time.sleep(0.02)
            if not cancel or self.status == "cancelled" or not os.path.exists(cancel):
                continue
            self.status = "cancelled"
            print("## the job is cancelled", flush=True)
            if still_wanted():
                continue
            # ProcessInvoker.cs, CancelAndKillProcessTree: to the process of the step alone
            for number, seconds in ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, 60)):
                process.send_signal(number)
                try:
                    process.wait(seconds * PATIENCE)
                    break
                except subprocess.TimeoutExpired:
                    print(f"## it did not end by {number.name}", flush=True)
        ended.wait(5)  # ProcessInvoker.cs: then the next step begins, whoever holds its output
        return process.returncode == 0 and self.status != "cancelled"

    def end(self):
        """What a job leaves running is killed."""
        for environ in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(environ, "rb") as f:
                    is_ours = f"RUNNER_TRACKING_ID={self.tracking}".encode() in f.read().split(b"\0")
                if is_ours:  # JobExtension.cs, 'Cleaning up orphan processes'
                    pid = int(environ.split("/")[2])
                    with open(f"/proc/{pid}/cmdline", "rb") as f:
                        print(f"## orphan: {f.read().decode('utf-8', 'replace')!r}", flush=True)
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def action(self, name, given, env):
        if name.startswith("./"):
            folder = os.path.join(self.workspace, name)
            if not os.path.exists(os.path.join(folder, "action.yml")):
                print(f"Can't find 'action.yml' under '{folder}'", flush=True)
                return False
            with open(os.path.join(folder, "action.yml"), encoding="utf-8") as f:
                action = yaml.safe_load(f)
            for unknown in set(given) - set(action["inputs"]):
                self.printed.line(f"##[warning]Unexpected input(s) '{unknown}'")
                del given[unknown]
            inputs = {k: given.pop(k, self.text(v.get("default", ""), {})) for k, v in action["inputs"].items()}
            before, self.action_path = self.action_path, folder
            outputs, self.outputs = self.outputs, {}
            ok = self.run(action["runs"]["steps"], inputs | given, env) == "success"
            self.action_path, self.outputs = before, outputs
            return ok
        if name.startswith("actions/checkout@"):
            path = os.path.join(self.workspace, given.get("path", "."))
            subprocess.run(["git", "clone", "-q", self.repository, path], check=True)
            subprocess.run(["git", "-C", path, "checkout", "-q", given.get("ref") or self.head],
                           check=True)
            if given.get("persist-credentials", "true").lower() != "false":  # git-auth-helper.ts
                subprocess.run(["git", "-C", path, "config", f"http.{self.url}/.extraheader",
                                "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46bm90LW91cnM="], check=True)
            return True
        artifact = os.path.join(self.beside, "artifacts", given["name"])
        if name.startswith("actions/download-artifact@"):
            if not os.path.isdir(artifact):
                return False
            shutil.copytree(artifact, os.path.join(self.workspace, given["path"]))
            return True
        assert name.startswith("actions/upload-artifact@"), name
        if os.path.isdir(os.path.join(self.workspace, given["path"])):
            shutil.copytree(os.path.join(self.workspace, given["path"]), artifact)
        return True


def workflow_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".md"):
        text = next(block for block in re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
                    if "performance.yml" in block)
    return yaml.safe_load(text)


def main(workflow, workspace, *arguments):
    described = workflow_of(workflow)
    job = Job(described, next(iter(described["jobs"])), workspace, *arguments)
    job.run(job.steps, {})
    job.end()
    if "comment" not in described["jobs"]:
        return 0 if job.status == "success" else 1
    assert not job.may_comment, "what is built may write"
    shutil.rmtree(workspace + "-of-comment", ignore_errors=True)
    os.mkdir(workspace + "-of-comment")
    comments = Job(described, "comment", workspace + "-of-comment", *arguments)
    if job.status != "cancelled":
        comments.run(comments.steps, {})
    return 0 if job.status == comments.status == "success" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
