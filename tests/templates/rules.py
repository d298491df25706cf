"""Each rule of the models of runners, workflow.py and pipelines.py, by a small workflow that ends in another
way without it: each runs with the rule, and again without.

  rules.py [RULE...]
"""
import os
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pipelines  # noqa: E402
import workflow  # noqa: E402


def steps(*texts, job="", after=""):
    """A workflow whose job has these steps, each of some lines of YAML."""
    body = "".join("      - " + textwrap.indent(textwrap.dedent(t).strip("\n"), "        ")[8:] + "\n" for t in texts)
    return f"permissions: {{contents: read}}\njobs:\n  one:\n{job}    steps:\n{body}{after}"


ACTION = """
inputs: {wanted: {default: ""}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {OWN: own}
      run: |
        echo "wanted=${{ inputs.wanted }} other=${{ inputs.other }} outer=$OUTER own=$OWN"
        exit ${{ inputs.wanted || '0' }}
    - shell: bash
      if: ${{ failure() }}
      run: echo "the action saw a failure"
"""
ENV_OF_JOB = "    env: {OWN: job, GITHUB_SHA: job, OUTER: job}\n"


def prints(text):
    return "shell: bash\nrun: |\n" + textwrap.indent(f"printf '%b' '{text}\\n'\necho end", "  ")


def left_behind(command):
    """A step that leaves a process. It ends when that is what the command says, and no longer a copy of the shell."""
    return f"run: |\n  setsid {command} &\n  until grep -qa ^sleep /proc/$!/cmdline; do sleep 0.02; done"


# rule: the workflow, what is so with the rule of (log, commands, annotations, status), and variables
CASES = {
    "step-env": (steps("env: {OWN: step}\nrun: 'echo own=$OWN'", "uses: ./it\nenv: {OUTER: outer}", job=ENV_OF_JOB),
                 lambda r: "own=step" in r.log and "outer=outer own=own" in r.log),
    "context": (steps("run: 'echo sha=$GITHUB_SHA'", job=ENV_OF_JOB), lambda r: "sha=job" not in r.log),
    "schedule": (steps("run: 'echo main=${{ github.event.repository.default_branch }}.'"),
                 lambda r: "main=.\n" in r.log, {"EVENT": "schedule"}),
    "header": (steps("uses: actions/checkout@v4", "run: git config --get-regexp extraheader"),
               lambda r: "http.https://github.test/.extraheader AUTHORIZATION: basic" in r.log),
    "cancel": (steps("""
        run: |
          trap 'echo INT' INT
          trap 'echo TERM' TERM
          (trap 'echo child' INT TERM; sleep 30; echo survives) & touch "$RUNNER_TEMP/cancel"
          for i in {1..24}; do sleep 1 || true; done
          echo ended by itself"""),
               lambda r: r.log.index("INT\n") < r.log.index("did not end by SIGINT") < r.log.index("TERM\n") <
               r.log.index("did not end by SIGTERM") and "child" not in r.log and "itself" not in r.log, {"CANCEL": "1"}),
    "cancelled-steps": (steps("""
        run: |
          touch "$RUNNER_TEMP/cancel"
          sleep 20""", "run: echo plain", "if: ${{ !cancelled() }}\nrun: echo not-cancelled", "if: always()\nrun: echo always"),
                        lambda r: "\nalways\n" in r.log and "\nplain" not in r.log and "\nnot-cancelled" not in r.log,
                        {"CANCEL": "1"}),
    "line-command": (steps(prints("\\xc2\\xa0 ::Error file=x::one\\n::unknown::two\\nx ::error::three")),
                     lambda r: r.commands == "error one\n"),
    "old-command": (steps(prints("a ###[Error]one ##[nothing]two\\n##[unknown]three ##[error]four")),
                    lambda r: r.commands == "error one ##[nothing]two\n"),
    "line-ends": (steps(prints("a\\r::error::one\\r\\n")), lambda r: r.commands == "error one\n"),
    "stop-commands": (steps(prints("::stop-commands::t\\n::error::one\\n::t::\\n::error::two")),
                      lambda r: r.commands == "stop-commands t\nerror two\n"),
    "ten": (steps("shell: bash\nrun: for i in {1..12}; do echo ::error::$i; echo ::warning::$i; done"),
            lambda r: r.annotations.count("error") == 10 and r.annotations.count("warning") == 10),
    "summary": (steps('run: head -c 1048577 /dev/zero > "$GITHUB_STEP_SUMMARY"'),
                lambda r: "too large" in r.log and r.summary == 0),
    "pipefail": (steps("run: 'false | cat'", "run: echo goes on"), lambda r: "\ngoes on\n" in r.log and r.status == 0),
    "success": (steps("uses: ./it\nwith: {wanted: '3'}", "if: ${{ '1' == '1' }}\nrun: echo goes on"),
                lambda r: "the action saw a failure" in r.log and "goes on" not in r.log and r.status == 1),
    "outputs": (steps('id: it\nrun: |\n  echo said=word >> "$GITHUB_OUTPUT"\n  exit 1',
                      "if: always()\nrun: 'echo it=${{ steps.it.outputs.said }}.'"), lambda r: "it=word." in r.log),
    "later-env": (steps('run: |\n  echo LATER=on >> "$GITHUB_ENV"\n  echo "first=$LATER."', "run: 'echo then=$LATER.'"),
                  lambda r: "first=." in r.log and "then=on." in r.log),
    "streams": (steps(left_behind("sleep 20.0731"), "run: 'echo next; pgrep -fx \"sleep 20.0731\" > /dev/null && echo early'"),
                lambda r: "\nearly\n" in r.log),
    "orphans": (steps(left_behind("sleep 1234 > /dev/null 2>&1")), lambda r: "orphan: 'sleep\\x001234" in r.log),
    "unknown-input": (steps("uses: ./it\nwith: {other: '5'}"), lambda r: "other= " in r.log and "Unexpected" in r.log),
    "permissions": (steps("run: 'true'", after="""
  comment:
    permissions: {pull-requests: write}
    steps: [{run: "echo token=${{ github.token }}"}]
"""), lambda r: "token=may-pull-requests-write" in r.log),
}


def of_gitlab(script, more=""):
    lines = "".join(f"    - {line!r}\n" for line in script)
    return "variables: {LEVEL: top}\njob:\n  variables: {LEVEL: job}\n  artifacts: {when: always, paths: [kept]}\n" \
        f"{more}  script:\n{lines}"


def of_jenkins(stages, post=""):
    return "pipeline {\n    environment {\n        LEVEL = 'declared'\n    }\n    stages {\n" + stages + \
        "\n    }\n    post {\n        always { archiveArtifacts artifacts: 'kept/**'\n" + post + "}\n    }\n}\n"


# rule: gitlab or jenkins, the pipeline, what is so with the rule, and variables
PIPELINES = {
    "project-wins": ("gitlab", of_gitlab(["echo level=$LEVEL"]), lambda r: "level=project" in r.log,
                     {"VARIABLES": '{"project": {"LEVEL": "project"}}'}),
    "exported": ("gitlab", of_gitlab(["echo level=$LEVEL", "tr '\\0' '\\n' < /proc/$$/environ | grep LEVEL || echo hidden"]),
                 lambda r: "level=job" in r.log and "hidden" in r.log),
    "errexit": ("gitlab", of_gitlab(["false | cat", "echo goes on"]), lambda r: "goes on" not in r.log and r.status == 1),
    "group": ("gitlab", of_gitlab(["(trap 'echo child' TERM; touch cancel; sleep 15; true) & sleep 15; sleep 15; echo itself"]),
              lambda r: "child" in r.log and "itself" not in r.log, {"CANCEL": "1"}),
    "after": ("gitlab", of_gitlab(["touch cancel; sleep 15; sleep 15"], "  after_script: ['echo after level=$LEVEL; exit 1']\n"),
              lambda r: "after level=job" in r.log, {"CANCEL": "1"}),
    "allowed": ("gitlab", of_gitlab(["exit 77"], "  allow_failure: {exit_codes: [77]}\n"), lambda r: r.status == 77),
    "environment": ("jenkins", of_jenkins("sh 'echo level=$LEVEL'"), lambda r: "level=declared" in r.log,
                    {"VARIABLES": '{"agent": {"LEVEL": "agent"}}'}),
    "cookie": ("jenkins", of_jenkins("""sh(script: '''#!/bin/bash
setsid bash -c 'trap "echo child; exit" TERM; touch cancel; for i in {1..150}; do sleep 0.1; done' &
sleep 15; sleep 15''')"""), lambda r: "child" in r.log, {"CANCEL": "1"}),
    "post": ("jenkins", of_jenkins("sh 'mkdir kept; touch kept/it; exit 1'", "sh 'echo post; exit 0'"),
             lambda r: "post" in r.log.splitlines() and r.status == 1),
    "catch": ("jenkins", of_jenkins("catchError { sh 'exit 1' }\n sh 'echo goes on'"),
              lambda r: "goes on" in r.log.splitlines() and r.status == 1),
}


class RanPipeline:
    def __init__(self, which, text, variables, without):
        with tempfile.TemporaryDirectory() as work:
            workspace = os.path.join(work, "workspace")
            os.makedirs(workspace)
            with open(os.path.join(work, "pipeline"), "w", encoding="utf-8") as f:
                f.write(text)
            environment = dict(os.environ, MODEL_WITHOUT=without, PYTHONDONTWRITEBYTECODE="1") | variables
            if "VARIABLES" in variables:
                environment["VARIABLES"] = os.path.join(work, "variables")
                with open(environment["VARIABLES"], "w", encoding="utf-8") as f:
                    f.write(variables["VARIABLES"])
            if environment.pop("CANCEL", ""):
                environment["CANCEL_WHEN"] = os.path.join(workspace, "cancel")
            done = subprocess.run([sys.executable, pipelines.__file__, which, os.path.join(work, "pipeline"), workspace],
                                  env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.status, self.log, self.commands = done.returncode, done.stdout.decode("utf-8", "replace"), ""


class Ran:
    def __init__(self, text, variables, without=""):
        with tempfile.TemporaryDirectory() as work:
            repository = os.path.join(work, "repository")
            os.makedirs(os.path.join(work, "job", "workspace", "it"))
            os.makedirs(repository)
            for folder in (repository, os.path.join(work, "job", "workspace")):
                os.makedirs(os.path.join(folder, "it"), exist_ok=True)
                with open(os.path.join(folder, "it", "action.yml"), "w", encoding="utf-8") as f:
                    f.write(ACTION)
            if "actions/checkout" in text:
                os.rename(os.path.join(work, "job", "workspace", "it"), os.path.join(work, "away"))
            git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@a.test"]
            for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
                subprocess.run(git + command, check=True)
            head = subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
            with open(os.path.join(work, "workflow.yml"), "w", encoding="utf-8") as f:
                f.write(text)
            environment = dict(os.environ, MODEL_WITHOUT=without, HOME=work, PYTHONDONTWRITEBYTECODE="1")
            environment.update(variables)
            if environment.pop("CANCEL", ""):
                environment["CANCEL_WHEN"] = os.path.join(work, "job", "temp", "cancel")
            done = subprocess.run([sys.executable, workflow.__file__, os.path.join(work, "workflow.yml"),
                                   os.path.join(work, "job", "workspace"), repository, head, head],
                                  env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.status, self.log = done.returncode, "\n" + done.stdout.decode("utf-8", "replace")

            def kept(name):
                path = os.path.join(work, "job", name)
                return open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            self.commands, self.annotations = kept("commands"), kept("annotations")
            summary = os.path.join(work, "job", "step_summary.md")
            self.summary = os.path.getsize(summary) if os.path.exists(summary) else 0


def holds(case, ran):
    try:
        return bool(case[1](ran))
    except ValueError:  # of index(): it is not in the log
        return False


def tried(rule):
    if rule in CASES:
        case = CASES[rule]
        run = lambda without: Ran(case[0], case[2] if len(case) > 2 else {}, without)
    else:
        which, *case = PIPELINES[rule]
        run = lambda without: RanPipeline(which, case[0], case[2] if len(case) > 2 else {}, without)
    with_it, without = run(""), run(rule)
    wrong = []
    if not holds(case, with_it):
        wrong.append(f"WRONG: {rule}: the model does not do so:\n{with_it.log}{with_it.commands}")
    if holds(case, without):
        wrong.append(f"WRONG: {rule}: the same without the rule:\n{without.log}")
    return wrong


if __name__ == "__main__":
    assert set(CASES) == set(workflow.RULES), set(CASES) ^ set(workflow.RULES)
    assert set(PIPELINES) == set(pipelines.RULES), set(PIPELINES) ^ set(pipelines.RULES)
    names = sys.argv[1:] or [*CASES, *PIPELINES]
    with ThreadPoolExecutor(10) as pool:
        all_wrong = [w for wrong in pool.map(tried, names) for w in wrong]
    print("\n".join(all_wrong) or f"ok: {len(names)} rules of runners, each of which matters")
    sys.exit(1 if all_wrong else 0)
