"""Runs the first job of a GitHub workflow here, step by step as GitHub's runner does, and the job
`comment` after it where there is one, with the first value of its matrix, in a workspace and with a
token of its own.

  workflow.py WORKFLOW WORKSPACE REPOSITORY HEAD BASE [REF]

WORKFLOW is a YAML file, or a page whose block of YAML names itself performance.yml. WORKSPACE is an
empty folder, REPOSITORY a git repository with the commits HEAD and BASE of pull request 7, or of what
was pushed to REF. Composite actions of the repository run as they stand; of the others, checkout is a
clone, upload-artifact a copy to WORKSPACE/../artifacts, and cache keeps a path in the folder
GITHUB_CACHE names, if all steps went well. Exits with 1 where the job fails.
"""
import glob
import hashlib
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
        self.matrix = {}
        self.github = {
            "workspace": self.workspace, "repository": "me/it", "server_url": "https://github.test",
            "run_id": "1234", "ref": ref, "token": "secret",
            "event": {"pull_request": {"number": 7, "base": {"sha": base}, "head": {"sha": head}},
                      "repository": {"default_branch": "main"}},
        }
        self.runner = {"temp": os.path.join(self.beside, "temp"), "arch": "X64"}
        self.action_path = ""
        self.env = {}
        self.outputs = {}  # of steps that have an id
        self.to_keep = []  # what the cache has not, by key

    def value(self, expression, inputs):
        """What stands between ${{ and }}: names, strings, cancelled(), hashFiles(...), !, &&, || and ==."""
        known = {"github": self.github, "inputs": inputs, "runner": self.runner,
                 "matrix": self.matrix, "secrets": {},
                 "steps": {name: {"outputs": said} for name, said in self.outputs.items()}}
        expression = re.sub(r"hashFiles\(([^)]*)\)", lambda m: repr(self.hash_of(
            name.strip(" '") for name in m.group(1).split(","))), expression)

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

    def hash_of(self, names):
        """Of the files together; there must be one for each name, or a key would never change."""
        digest = hashlib.sha256()
        for name in names:
            files = sorted(glob.glob(os.path.join(self.workspace, name)))
            if not files:
                raise FileNotFoundError(name)
            for file in files:
                with open(file, "rb") as f:
                    digest.update(f.read())
        return digest.hexdigest()

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
                           GITHUB_ENV=os.path.join(self.beside, "env"),
                           GITHUB_PATH=os.path.join(self.beside, "path"),
                           GITHUB_STEP_SUMMARY=os.path.join(self.beside, "step_summary.md"),
                           GITHUB_OUTPUT=os.path.join(self.beside, "output"))
        environment |= self.env | {k: self.text(v, inputs) for k, v in step.get("env", {}).items()}
        # Without a shell that is named there is no pipefail.
        options = ["-eo", "pipefail"] if step.get("shell", self.default_shell) == "bash" else ["-e"]
        before = self.said_so_far()
        ok = subprocess.run(["bash", "--noprofile", "--norc", *options, script],
                            cwd=self.workspace, env=environment, check=False).returncode == 0
        if "id" in step:
            said = self.said_so_far()[len(before):]
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in said)
        return ok

    def said_so_far(self):
        try:
            with open(os.path.join(self.beside, "output"), encoding="utf-8") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def cache(self, path, key):
        kept = os.path.join(os.environ["GITHUB_CACHE"], key)
        if os.path.exists(kept):
            shutil.copy2(kept, os.path.join(self.workspace, path))
        else:
            self.to_keep.append((os.path.join(self.workspace, path), kept))

    def keep(self):
        for path, kept in self.to_keep:
            if not self.failed:
                shutil.copy2(path, kept)

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
            assert given.get("persist-credentials") == "False", "what is built can read the token"
            path = os.path.join(self.workspace, given.get("path", "."))
            subprocess.run(["git", "clone", "-q", self.repository, path], check=True)
            subprocess.run(["git", "-C", path, "checkout", "-q", given.get("ref", self.head)],
                           check=True)
            return True
        if name.startswith("actions/cache@"):
            self.cache(given["path"], given["key"])
            return True
        artifact = os.path.join(self.beside, "artifacts", given["name"])
        if name.startswith("actions/download-artifact@"):
            if not os.path.isdir(artifact):
                return False
            shutil.copytree(artifact, os.path.join(self.workspace, given["path"]))
            return True
        assert name.startswith("actions/upload-artifact@"), name
        shutil.copytree(given["path"], artifact)
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
    jobs = described["jobs"]
    apart = "comment" in jobs
    if apart:
        assert described["permissions"] == {"contents": "read"}, "what is built may write"
    shell = described.get("defaults", {}).get("run", {}).get("shell")
    job, first = Job(shell, workspace, *arguments), next(iter(jobs.values()))
    job.env = {k: job.text(v, {}) for k, v in first.get("env", {}).items()}
    job.run(first["steps"], {})
    job.keep()
    if not apart:
        return 1 if job.failed else 0
    comments = Job(shell, workspace + "-of-comment", *arguments)
    shutil.rmtree(comments.workspace, ignore_errors=True)
    os.mkdir(comments.workspace)
    comments.matrix = {k: v[0] for k, v in jobs["comment"]["strategy"]["matrix"].items()}
    comments.run(jobs["comment"]["steps"], {})
    return 1 if job.failed or comments.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
