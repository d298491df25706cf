#!/usr/bin/env bash
# What a runner does to a job, and a server to its runner: the action and the script of all templates,
# in the model of GitHub's runner (workflow.py), with gates and servers that are scripts. Where a program
# has to be told that it is over, gates are real.
#   tests/templates/runner.sh GATES SERVER        outcomes_gates, outcomes_no_doctest
# shellcheck disable=SC2317,SC2016  # functions are called through expect; scripts expand what is in them
set -euo pipefail
export GATES_PROGRAM SERVER_PROGRAM
GATES_PROGRAM=$(realpath "${1:?usage: runner.sh GATES SERVER}")
SERVER_PROGRAM=$(realpath "${2:?usage: runner.sh GATES SERVER}")
here=$(cd "$(dirname "$0")" && pwd)
ci=$(cd "$here/../../ci" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" "${!GITHUB_@}" "${!GIT_@}" no_proxy NO_PROXY http_proxy
export HOME=$work LC_ALL=C LLMBENCH_PROGRESS=off PYTHONDONTWRITEBYTECODE=1
export PATIENCE=8  # what is asked is whether all of it ends at the first word, on a busy machine, too
failed=0
log=$work/log

expect() {
    if "${@:2}" > "$work/said" 2>&1; then echo "ok: $1"; return; fi
    failed=1
    echo "WRONG: $1"
    sed 's/^/    | /' "$work/said" "$log"
}
says() { grep -qF -- "$1" "${2:-$log}"; }
says_not() { ! grep -F -- "$1" "${2:-$log}"; }
is() { [[ $1 == "$2" ]] || { echo "'$1' is not '$2'"; return 1; }; }
read -r port hub_port < <(python3 "$here/../support/free_ports.py" 2)
export PORT=$port OWN=$port  # a word that no other test's processes have

# ---- a repository, and a job of its workflow -------------------------------------------------------
repository=$work/repository
mkdir -p "$repository/.github/actions" "$work/bin"
cp -r "$ci/github" "$repository/.github/actions/llmbench"
# Gates that write down what they see, and end with CODE.
cat > "$repository/gates" << 'STUB'
#!/usr/bin/env bash
env | grep ^LLMBENCH_ | sort
[[ ! ${SEES:-} ]] || bash -c "$SEES"
mkdir -p "$LLMBENCH_REPORT_DIR"
[[ ${CODE:-0} == none ]] || printf '{\n  "exit_code": %s,\n}\n' "${CODE:-0}" > "$LLMBENCH_REPORT_DIR/result.json"
echo summary > "$LLMBENCH_REPORT_DIR/summary.md"
if [[ ${LLMBENCH_HISTORY:-} == append ]]; then
    mkdir -p "$LLMBENCH_HISTORY_DIR" && echo night > "$LLMBENCH_HISTORY_DIR/$RANDOM$RANDOM.jsonl"
fi
code=${STATUS:-${CODE:-0}}
exit "${code/none/0}"
STUB
printf '#!/bin/sh\nexec "$GATES_PROGRAM" --test-case="default target"\n' > "$repository/real_gates"
printf '#!/bin/sh\n[ -z "${STARTED:-}" ] || : > "$STARTED"\nexec "$SERVER_PROGRAM" serve "$PORT" ${1:-2}\n' > "$repository/server"
chmod +x "$repository"/{gates,real_gates,server}
git -C "$repository" init -q --initial-branch=main .
git -C "$repository" add -A
git -C "$repository" -c user.name=a -c user.email=a@a.test commit -qm one
head=$(git -C "$repository" rev-parse HEAD)
# job STATUS ENV WITH [REF]: one of a workflow with the job's env and the action's inputs, a line each
job() {
    local status=0
    rm -rf "$work/job"
    mkdir -p "$work/job/workspace"
    {
        printf '%s\n' 'permissions: {contents: write}' 'jobs:' '  gates:' "    env: {A: b, $2}" '    steps:' \
            "      - {uses: actions/checkout@v4${checkout:-, with: {persist-credentials: false\}}}" \
            '      - uses: ./.github/actions/llmbench' '        with:'
        printf '          %s\n' 'gates: ./gates' "${@:5}" | sed "${3:+/^ *gates: /d}"
        if [[ $3 ]]; then printf '%s\n' "$3" | sed 's/^/          /'; fi
    } > "$work/workflow.yml"
    grep -q '^          gates: ' "$work/workflow.yml" || sed -i 's#^        with:#&\n          gates: ./gates#' "$work/workflow.yml"
    python3 "$here/workflow.py" "$work/workflow.yml" "$work/job/workspace" "$repository" "$head" "$head" ${4:+"$4"} \
        > "$log" 2>&1 || status=$?
    expect "exit code $1" is "$status" "$1"
}
artifact=$work/job/artifacts/llmbench-report

echo "== variables of the job"
job 0 'LLMBENCH_INCONCLUSIVE: fail, LLMBENCH_URL: "http://h:1", LLMBENCH_BASELINE_URL: "http://b:2", LLMBENCH_READY_WITHIN: 5min, LLMBENCH_REPORT_DIR: own' ''
for line in LLMBENCH_INCONCLUSIVE=fail LLMBENCH_URL=http://h:1 LLMBENCH_BASELINE_URL=http://b:2 \
    LLMBENCH_READY_WITHIN=5min LLMBENCH_REPORT_DIR=own; do
    expect "it keeps $line" says "$line"
done
expect "and its own folder is the artifact" [ -s "$artifact/result.json" ]
job 0 'LLMBENCH_INCONCLUSIVE: fail, LLMBENCH_URL: "http://h:1", LLMBENCH_BASELINE_URL: "http://b:2"' \
    $'inconclusive: skip\nurl: http://i:1\nbaseline-url: http://i:2'
for line in LLMBENCH_INCONCLUSIVE=skip LLMBENCH_URL=http://i:1 LLMBENCH_BASELINE_URL=http://i:2; do
    expect "an input wins: $line" says "$line"
done
job 0 'A: c' ''
expect "nothing is set that nobody gave" says_not LLMBENCH_INCONCLUSIVE
expect "nothing is set that nobody gave" says_not LLMBENCH_BASELINE_URL
expect "but the URL" says LLMBENCH_URL=http://127.0.0.1:8000

echo "== how the gates ended, and what they wrote"
job 0 'CODE: 0' ''
job 1 'CODE: none' ''
expect "the reason" says "::error::the command ended with 0 and left no result.json"
expect "as 3" says status=3 "$work/job/output"
job 1 'CODE: none, STATUS: 77' ''
expect "as 3" says status=3 "$work/job/output"
job 0 'CODE: 77' ''
expect "a notice" says "notice the gates were skipped" "$work/job/annotations"
expect "as 77" says status=77 "$work/job/output"
job 1 'A: c' 'gates: ctest -L mistyped'
expect "a label that no test has" says "left no result.json"
job 0 'A: c' 'gates: mkdir -p llmbench-report/one llmbench-report/two; for i in one two; do LLMBENCH_REPORT_DIR=llmbench-report/$i ./gates; done'
expect "programs with folders of their own" says status=0 "$work/job/output"

echo "== the history"
git init -q --bare --initial-branch=main "$work/hub.git"
git -C "$repository" push -q "$work/hub.git" main
python3 "$here/hub.py" "$hub_port" "$work/hub.git" "$work/hub.log" &
until (: < "/dev/tcp/127.0.0.1/$hub_port") 2> /dev/null; do sleep 0.05; done
export SERVER_URL=http://127.0.0.1:$hub_port
nights() { is "$(git -C "$work/hub.git" ls-tree -r --name-only perf-history 2> /dev/null | grep -c jsonl)" "$1"; }
job 0 'A: c' 'history: "true"' refs/heads/main
expect "a push to main adds to it" nights 1
EVENT=schedule job 0 'A: c' 'history: "true"' refs/heads/main
expect "a schedule does, too" nights 2
checkout='' ; unset checkout; checkout=' '
job 0 'A: c' 'history: "true"' refs/heads/main
unset checkout
expect "where actions/checkout has left its header, too" nights 3
expect "which went alone" says_not " 2 headers" "$work/hub.log"
EVENT=schedule job 0 'A: c' 'history: "true"' refs/heads/other
expect "another branch does not, and says so" says "only pushes, schedules and manual runs of refs/heads/main add to it"
expect "another branch does not" nights 3
# GitHub names the default branch as the ref of these, whatever code of a pull request they run.
for event in issue_comment workflow_run pull_request_target; do
    EVENT=$event job 0 'A: c' 'history: "true"' refs/heads/main
    expect "$event does not, and says so" says "this is $event of refs/heads/main"
    expect "$event does not" nights 3
done
EVENT=workflow_dispatch job 0 'A: c' 'history: "true"' refs/heads/main
expect "a manual run does" nights 4
SEES='echo it has $(ls "$LLMBENCH_HISTORY_DIR"/*.jsonl | wc -l)' job 0 'A: c' 'history: "true"'
expect "a pull request reads what main has" says "it has 4"
expect "and does not add to it" nights 4
job 0 'LLMBENCH_HISTORY: ""' 'history: "true"' refs/heads/main
expect "where nothing was added a notice says so" says "notice history.sh: nothing was added" "$work/job/annotations"
job 1 'LLMBENCH_HISTORY_DIR: .github' 'history: "true"' refs/heads/main
expect "a folder with other files is left alone" says "LLMBENCH_HISTORY_DIR=.github holds other files"
expect "all of it" [ -e "$work/job/workspace/.github/actions" ]

echo "== secrets"
# Of every process that they may look at: the arguments, and the environment it was started with. What
# is above the model is no part of the job.
secrets='GITHUB_TOKEN: planted-1, GH_TOKEN: planted-2, ACTIONS_ID_TOKEN_REQUEST_TOKEN: planted-3, GIT_CONFIG_COUNT: 1, GIT_CONFIG_KEY_0: a.b, GIT_CONFIG_VALUE_0: planted-4, CI_JOB_TOKEN: planted-5'
cat > "$work/sees.py" << 'STUB'
import glob
seen = set()
for name in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        seen |= {word for word in open(name, "rb").read().split(b"\0") if b"planted" in word}
    except OSError:
        pass
print(seen or "sees none")
STUB
export SEES="python3 $work/sees.py"
job 0 "$secrets" $'history: "true"'
expect "gates see none" says "sees none"
expect "nor anything else" says_not planted
unset SEES

echo "== a server that tells a runner what to do"
cat > "$work/commands" << 'STUB'
for name in error Warning add-mask stop-commands set-env group echo notice; do
    printf '::%s::t\n  ::%s x=y::t\n\t::%s::t\n\302\240::%s::t\na\r::%s::t\n##[%s]t\na ##[%s]t\n###[%s]t\n####[%s]t\n# ##[%s x=y;]t\n' \
        "$name" "$name" "$name" "$name" "$name" "$name" "$name" "$name" "$name" "$name"
done | shuf -n 39
printf '\033[31m##vso[task.complete]##teamcity[x]\nsection_start:1:x\r\033[0K\342\200\250::error::u\n'
exit 1
STUB
for ((round = 0; round < 3; round++)); do
    job 1 'A: c' $'gates: ./real_gates\nserver: bash '"$work/commands"$'\nurl: http://127.0.0.1:'"$port"
    expect "its words are shown" says "    | "
    expect "none of them is a command" says_not '"' <(grep -vE '^(error (the server of|.*invalid|run was )|group|endgroup)' "$work/job/commands" | sed 's/^/"/')
    expect "none is one of another runner" says_not "##vso["
    expect "no escapes" says_not $'\033'
done

echo "== a job that is cancelled"
# A server that does not hear, with a child that does not, either: both are gone, and the reports are there.
cat > "$work/deaf" << 'STUB'
trap '' INT TERM
(trap '' INT TERM; exec sleep 1001.$OWN) &
"$SERVER_PROGRAM" serve "$PORT" 3000 &
wait; wait; wait; sleep 1002.$OWN
STUB
nobody() { ! pgrep -f "sleep 100[12][.]$OWN|serve $port" > "$work/left" || { cat "$work/left"; return 1; }; }
cancels() {
    export CANCEL_WHEN=$work/job/workspace/llmbench-report/records.jsonl
    job 1 'A: c' "$1"$'\nurl: http://127.0.0.1:'"$port"
    unset CANCEL_WHEN
    expect "nobody is left" nobody
    expect "nobody had to be killed by the runner" says_not "orphan:"
    expect "the artifact has server.log" [ -e "$artifact/server.log" ]
    for file in result.json junit.xml summary.md report.html; do
        expect "the artifact has $file" [ -s "$artifact/$file" ]
    done
    expect "which is red" says '"exit_code": 3,' "$artifact/result.json"
    expect "the gates heard of it" says "interrupted" "$artifact/result.json"
    expect "before the runner had to say more" says_not "it did not end by SIGINT"
}
cancels $'gates: ./real_gates\nserver: ./server 3000'
cancels $'gates: ./real_gates | tee of_gates\nserver: bash '"$work/deaf"

echo "== a job of GitLab and of Jenkins"
# other RUNNER STATUS VARIABLES: the job of its template, in a checkout, with stand-ins for what builds
printf '#!/bin/sh\nexit 0\n' | tee "$work/bin/apt-get" "$work/bin/g++" > /dev/null
chmod +x "$work"/bin/*
echo "PATH=$work/bin:\$PATH" > "$work/.bash_profile"  # GitLab's shell is one that somebody logs in to
other() {
    local status=0 file=$ci/gitlab.yml
    if [[ $1 == jenkins ]]; then
        file=$work/Jenkinsfile
        sed "s#SERVER = '[^']*'#SERVER = '${server:-./server}'\n        LLMBENCH_URL = 'http://127.0.0.1:$port'#" "$ci/Jenkinsfile" > "$file"
    fi
    rm -rf "$work/other"
    mkdir -p "$work/other/workspace/ci"
    cp -r "$repository"/{gates,real_gates,server} "$work/other/workspace/"
    cp -r "$ci/github" "$work/other/workspace/ci/"
    printf '%s\n' "$3" > "$work/variables"
    VARIABLES=$work/variables PATH=$work/bin:$PATH python3 "$here/pipelines.py" "$1" "$file" "$work/other/workspace" > "$log" 2>&1 || status=$?
    expect "$1: exit code $2" is "$status" "$2"
}
of_gitlab="\"SERVER\": \"./server\", \"LLMBENCH_URL\": \"http://127.0.0.1:$port\""
other gitlab 0 "{\"project\": {$of_gitlab}, \"global\": {\"LLMBENCH_INCONCLUSIVE\": \"fail\"}}"
expect "variables of the project and of a file reach the gates" says LLMBENCH_INCONCLUSIVE=fail
other gitlab 77 "{\"global\": {$of_gitlab, \"CODE\": \"77\"}}"
for code in none 1; do other gitlab 1 "{\"global\": {$of_gitlab, \"CODE\": \"$code\"}}"; done
other jenkins 0 '{"agent": {"LLMBENCH_INCONCLUSIVE": "fail"}}'
expect "variables of the agent reach the gates" says LLMBENCH_INCONCLUSIVE=fail
other jenkins 77 '{"agent": {"CODE": "77"}}'
for code in none 1; do other jenkins 1 "{\"agent\": {\"CODE\": \"$code\"}}"; done
export SEES="python3 $work/sees.py"
other gitlab 0 "{\"predefined\": {\"CI_JOB_TOKEN\": \"planted-1\", \"PERF_HISTORY_TOKEN\": \"planted-2\"}, \"project\": {$of_gitlab}}"
expect "gates see no token" says "sees none"
expect "nor anything else" says_not planted
unset SEES
# Jenkins ends the children of a process before it: gates hear of their server's end first.
declare -A hear=([gitlab]=interrupted [jenkins]="the server of LLMBENCH_SERVER")
for which in gitlab jenkins; do
    rm -f "$work/started"
    export CANCEL_WHEN=$work/started STARTED=$work/started
    sed -i 's/{1:-2}/{1:-3000}/' "$repository/server"
    cp "$repository/gates" "$work/stub"
    cp "$repository/real_gates" "$repository/gates"
    other "$which" 1 "{\"project\": {$of_gitlab}}"
    cp "$work/stub" "$repository/gates"
    sed -i 's/{1:-3000}/{1:-2}/' "$repository/server"
    unset CANCEL_WHEN STARTED
    expect "$which, cancelled: nobody is left" nobody
    expect "$which, cancelled: server.log is kept" [ -e "$work/other/artifacts/llmbench-report/server.log" ]
    for file in result.json junit.xml report.html; do
        expect "$which, cancelled: $file is kept" [ -s "$work/other/artifacts/llmbench-report/$file" ]
    done
    expect "$which, cancelled: the gates heard of it" says "${hear[$which]}" "$work/other/artifacts/llmbench-report/result.json"
done

echo "== where a server answers"
for url in "http://127.0.0.1:$port/v1" "http://localhost:$port/"; do
    job 0 'A: c' $'gates: ./real_gates\nserver: ./server\nurl: '"$url"
done
cat > "$work/unix.py" << 'STUB'
import http.server, os, socketserver, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, flush=True)
        self.send_response(503 if sys.argv[2:] and not os.path.exists(sys.argv[2]) else 200)
        open(sys.argv[2], "w").close() if sys.argv[2:] else None
        self.send_header("Content-Length", "0")
        self.end_headers()
    address_string = lambda self: ""
    log_message = lambda self, *_: None
class Server(socketserver.UnixStreamServer):
    get_request = lambda self: (super().get_request()[0], ("", 0))
Server(sys.argv[1], Healthy).serve_forever()
STUB
job 1 'A: c' $'gates: ./real_gates\nready-path: /up\nserver: python3 '"$work/unix.py $work/socket $work/was"$'\nurl: unix:'"$work/socket"
expect "a socket is waited for, at the path" says "/up" "$artifact/server.log"
expect "until it answers 200" says "/v1/models" "$artifact/server.log"
echo "== the report folder"
job 0 'LLMBENCH_REPORT_DIR: .github/actions' ''
expect "other files stay" [ -e "$work/job/workspace/.github/actions/llmbench/run_gates.sh" ]
job 1 'A: c' 'gates: "true"'
mkdir "$repository/llmbench-report"
echo '  "exit_code": 0,' > "$repository/llmbench-report/result.json"
mkdir "$repository/llmbench-report/old"
cp "$repository/llmbench-report/result.json" "$repository/llmbench-report/old/"
git -C "$repository" add -A
git -C "$repository" -c user.name=a -c user.email=a@a.test commit -qm old
head=$(git -C "$repository" rev-parse HEAD)
job 1 'CODE: none' ''
expect "a result of an earlier run is none" says "left no result.json"
exit "$failed"
