"""Runs the first job of a GitHub workflow here, step by step as GitHub's runner does.

  workflow.py WORKFLOW WORKSPACE REPOSITORY HEAD BASE [REF]

WORKSPACE is an empty folder, REPOSITORY a git repository with the commits HEAD and BASE of pull
request 7, or of what was pushed to REF. Composite actions of the repository run as they stand; of the others, checkout is a clone
and upload-artifact a copy to WORKSPACE/../artifacts. Exits with 1 where the job fails.
"""
import os
import re
import shutil
import subprocess
import sys

import yaml


class Job:
    def __init__(self, shell, workspace, repository, head, base, ref="refs/pull/7/merge"):
        self.default_shell = shell
        self.workspace = os.path.realpath(workspace)
        self.beside = os.path.dirname(self.workspace)
        self.repository, self.head = repository, head
        self.failed = False
        self.github = {
            "workspace": self.workspace, "repository": "me/it", "server_url": "https://github.test",
            "run_id": "1234", "ref": ref, "token": "secret",
            "event": {"pull_request": {"number": 7, "base": {"sha": base}, "head": {"sha": head}},
                      "repository": {"default_branch": "main"}},
        }
        self.runner = {"temp": os.path.join(self.beside, "temp")}
        self.action_path = ""

    def value(self, expression, inputs):
        """What stands between ${{ and }}: names, strings, cancelled(), !, &&, || and ==."""
        known = {"github": self.github, "inputs": inputs, "runner": self.runner}

        def word(match):
            text = match.group(0)
            if text in ("not", "and", "or"):
                return text
            if text[0] == "'":
                return repr(text[1:-1])
            if text == "cancelled()":
                return "False"
            at = known
            for part in text.split("."):
                at = at.get(part, "") if isinstance(at, dict) else ""
            return repr(at)

        # Operators first: a value may have them, too.
        for sign, name in (("!", " not "), ("&&", " and "), ("||", " or ")):
            expression = re.sub(rf"('[^']*')|{re.escape(sign)}",
                                lambda m, name=name: m.group(1) or name, expression)
        return eval(re.sub(r"'[^']*'|[a-z_][\w.-]*(\(\))?", word, expression))

    def text(self, template, inputs):
        return re.sub(r"\$\{\{(.*?)\}\}",
                      lambda m: str(self.value(m.group(1).strip(), inputs)), str(template))

    def wanted(self, step, inputs):
        """Without a function of the job's state in it, a condition means: and nothing failed."""
        condition = step.get("if", "").strip()
        condition = re.sub(r"^\$\{\{(.*)\}\}$", r"\1", condition).strip()
        if "cancelled()" not in condition and self.failed:
            return False
        return not condition or bool(self.value(condition, inputs))

    def run(self, steps, inputs):
        for step in steps:
            if not self.wanted(step, inputs):
                continue
            print(f"## {step.get('name', step.get('uses'))}", flush=True)
            given = {k: self.text(v, inputs) for k, v in step.get("with", {}).items()}
            if "run" in step:
                ok = self.shell(step, inputs)
            else:
                ok = self.action(step["uses"], given)
            if not ok and not step.get("continue-on-error"):
                self.failed = True

    def shell(self, step, inputs):
        script = os.path.join(self.beside, "step.sh")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.text(step["run"], inputs))
        environment = dict(os.environ, GITHUB_ACTIONS="true", CI="true",
                           GITHUB_WORKSPACE=self.workspace, GITHUB_SHA=self.head,
                           GITHUB_ACTION_PATH=self.action_path,
                           GITHUB_STEP_SUMMARY=os.path.join(self.beside, "step_summary.md"),
                           GITHUB_OUTPUT=os.path.join(self.beside, "output"))
        environment |= {k: self.text(v, inputs) for k, v in step.get("env", {}).items()}
        # Without a shell that is named there is no pipefail.
        options = ["-eo", "pipefail"] if step.get("shell", self.default_shell) == "bash" else ["-e"]
        return subprocess.run(["bash", "--noprofile", "--norc", *options, script],
                              cwd=self.workspace, env=environment, check=False).returncode == 0

    def action(self, name, given):
        if name.startswith("./"):
            with open(os.path.join(self.workspace, name, "action.yml"), encoding="utf-8") as f:
                action = yaml.safe_load(f)
            unknown = set(given) - set(action["inputs"])
            assert not unknown, f"no input of {name}: {unknown}"
            inputs = {k: given.get(k, self.text(v.get("default", ""), {}))
                      for k, v in action["inputs"].items()}
            self.action_path = os.path.join(self.workspace, name)
            self.run(action["runs"]["steps"], inputs)
            return True  # what failed in it has been noted
        if name.startswith("actions/checkout@"):
            path = os.path.join(self.workspace, given.get("path", "."))
            subprocess.run(["git", "clone", "-q", self.repository, path], check=True)
            subprocess.run(["git", "-C", path, "checkout", "-q", given.get("ref", self.head)],
                           check=True)
            return True
        assert name.startswith("actions/upload-artifact@"), name
        shutil.copytree(given["path"], os.path.join(self.beside, "artifacts", given["name"]))
        return True


def main(workflow, *arguments):
    with open(workflow, encoding="utf-8") as f:
        described = yaml.safe_load(f)
    steps = next(iter(described["jobs"].values()))["steps"]
    job = Job(described.get("defaults", {}).get("run", {}).get("shell"), *arguments)
    job.run(steps, {})
    return 1 if job.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
