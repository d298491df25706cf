"""Models of GitLab's runner and of Jenkins: run the job of a template here.

  pipelines.py gitlab|jenkins FILE WORKSPACE

WORKSPACE is a folder with the checkout. VARIABLES names a file of JSON: for GitLab {"project": {...}, "global": {...},
"predefined": {...}}, for Jenkins {"agent": {...}}. CANCEL_WHEN is a file: the job is cancelled once it is
there. PATIENCE is how many times as long Jenkins waits for a process to end as it does, 1. Artifacts are copied to WORKSPACE/../artifacts. Exits with 0 where the job is green, 77 where it is a
warning or unstable, 1 where it is red.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import yaml

# gitlab-runner: gitlabhq/gitlab-runner; docs: docs.gitlab.com; durable-task: jenkinsci/durable-task-plugin
# at 8dcdaa8; jenkins: jenkinsci/jenkins.
PATIENCE = float(os.environ.get("PATIENCE", "1"))


class Cancelled(Exception):
    pass


def tree():
    """{pid: (parent, environment)} of all processes."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/environ", "rb") as f:
                found[int(pid)] = (parent, f.read().split(b"\0"))
        except OSError:
            pass
    return found


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def followed(process, cancel):
    """Prints what it prints; cancel() ends it once the job is cancelled. Returns its exit code, or throws."""
    def read():
        while some := os.read(process.stdout.fileno(), 65536):
            sys.stdout.buffer.write(some)
            sys.stdout.flush()
    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    when = os.environ.get("CANCEL_WHEN")
    cancelled = False
    while process.poll() is None:
        time.sleep(0.02)
        if when and not cancelled and os.path.exists(when):
            cancelled = True
            print("## the job is cancelled", flush=True)
            cancel()
    reading.join(600)
    if cancelled:
        raise Cancelled
    return process.returncode


def given_variables():
    file = os.environ.get("VARIABLES")
    if not file:
        return {}
    with open(file, encoding="utf-8") as f:
        return json.load(f)


def clean_environment():
    return {k: v for k, v in os.environ.items() if k not in ("VARIABLES", "CANCEL_WHEN", "PATIENCE")}


# ---- GitLab --------------------------------------------------------------------------------------

def exports(variables):
    return "".join(f"export {k}={shell_quoted(str(v))}\n" for k, v in variables.items())


def shell_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def gitlab(path, workspace):
    with open(path, encoding="utf-8") as f:
        text = yaml.safe_load(f)
    job = next(v for v in text.values() if isinstance(v, dict) and "script" in v)
    given = given_variables()
    layers = [given.get("predefined", {}), text.get("variables", {}), given.get("global", {}), job.get("variables", {})]
    project = given.get("project", {})
    variables = {}
    for layer in layers + [project]:  # docs, 'CI/CD variables', precedence
        variables |= layer

    def shell(lines):
        script = "\n".join(lines) + "\n"
        options = "set -o pipefail\nset -o errexit\n"  # shells/bash.go
        # executors/shell/shell.go: the script on standard input exports the variables
        process = subprocess.Popen(["bash", "--login"], cwd=workspace, env=clean_environment(), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        # The whole of it is one command, so that nothing reads the rest of the script.
        process.stdin.write((options + exports(variables) + f": | eval {shell_quoted(script)}\nexit $?\n").encode())
        process.stdin.close()

        def cancel():
            os.killpg(process.pid, signal.SIGTERM)  # helpers/process/killer_unix.go
        return followed(process, cancel)

    code = 1
    try:
        code = shell(job.get("before_script", []) + job["script"])
    except Cancelled:
        pass
    if "after_script" in job:
        os.environ.pop("CANCEL_WHEN", None)
        shell(job["after_script"])  # docs: after a script that failed, too; its exit code does not count
    artifacts = job.get("artifacts", {})
    if code == 0 or artifacts.get("when") == "always":
        keep(artifacts.get("paths", []), workspace)
    allowed = job.get("allow_failure", {}).get("exit_codes", [])
    return 0 if code == 0 else 77 if code in allowed else 1


def keep(paths, workspace):
    for path in paths:
        if os.path.isdir(os.path.join(workspace, path)):
            shutil.copytree(os.path.join(workspace, path), os.path.join(workspace, "..", "artifacts", path))


# ---- Jenkins -------------------------------------------------------------------------------------

def jenkins(path, workspace):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"^\s*//.*$", "", f.read(), flags=re.M)
    agent = given_variables().get("agent", {})
    block = re.search(r"environment \{(.*?)\n    \}", text, re.S)
    declared = dict(re.findall(r"(\w+) = '([^']*)'", block[1])) if block else {}
    environment = agent | declared
    cookie = f"durable-{os.getpid()}"
    stages, _, after = text.partition("\n    post {")

    def sh(script):
        if not script.startswith("#!"):
            script = "#!/bin/sh -xe\n" + script
        file = os.path.join(workspace, "..", "script.sh")
        with open(file, "w", encoding="utf-8") as f:
            f.write(script)
        os.chmod(file, 0o755)
        # A shell beside it starts the script with the cookie.
        process = subprocess.Popen(["sh", "-c", f"jsc={cookie}; JENKINS_SERVER_COOKIE=$jsc '{file}'"], cwd=workspace,
                                   env=clean_environment() | {k: str(v) for k, v in environment.items()},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def end_with_children(pid, processes):
            for child, (parent, _) in processes.items():
                if parent == pid:
                    end_with_children(child, processes)
            kill(pid, signal.SIGTERM)
            for _ in range(int(50 * PATIENCE)):
                if not is_there(pid):
                    return
                time.sleep(0.1)
            kill(pid, signal.SIGKILL)

        def cancel():
            # FileMonitoringTask.java, stop; ProcessTree.java, killAll
            processes = tree()
            for pid, (_, environ) in sorted(processes.items()):
                if f"JENKINS_SERVER_COOKIE={cookie}".encode() in environ and is_there(pid):
                    end_with_children(pid, processes)
        return followed(process, cancel)

    result = 0
    steps = re.compile(r"(catchError\s*\{\s*)?\bsh(?:\((returnStatus: true, )?script: '''(.*?)'''\)| '([^']*)')", re.S)
    try:
        for caught, status_only, long, short in steps.findall(stages):
            code = sh((long or short).replace("\\\\", "\\"))
            if status_only and code == 77:  # what the template makes of it
                result = max(result, 77) if result != 1 else 1
            elif code != 0:
                result = 1
                if not caught:
                    break
    except Cancelled:
        result = 1
    if "always" in after:
        keep([a.removesuffix("/**") for a in re.findall(r"archiveArtifacts artifacts: '([^']*)'", after)], workspace)
        os.environ.pop("CANCEL_WHEN", None)
        for _, _, long, short in steps.findall(after):
            sh(long or short)
    return result


if __name__ == "__main__":
    os.makedirs(os.path.join(sys.argv[3], "..", "artifacts"), exist_ok=True)
    sys.exit({"gitlab": gitlab, "jenkins": jenkins}[sys.argv[1]](sys.argv[2], os.path.realpath(sys.argv[3])))
