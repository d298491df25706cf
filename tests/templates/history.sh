#!/usr/bin/env bash
# The branch that keeps a history (ci/github/history.sh), with local repositories.
#   tests/templates/history.sh
# shellcheck disable=SC2317  # functions are called through expect
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
script=$here/../../ci/github/history.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" "${!GITHUB_@}" "${!GIT_@}" HISTORY_BRANCH
export HOME=$work LC_ALL=C
failed=0
log=$work/log

expect() {
    if "${@:2}" > "$log" 2>&1; then echo "ok: $1"; return; fi
    failed=1
    echo "WRONG: $1"
    sed 's/^/    | /' "$log"
}
# kept COMMAND: with the folder of a job
kept() { LLMBENCH_HISTORY_DIR=$work/$1 bash "$script" "$2" "$remote"; }
add() { mkdir -p "$work/$1/2026/11" && echo "$2" > "$work/$1/2026/11/$2.jsonl"; }
# has N: so many files are on the branch
has() { [[ $(git -C "$remote" ls-tree -r --name-only perf-history | wc -l) == "$1" ]]; }
refused() { ! "$@" > "$log.refused" 2>&1 && cat "$log.refused"; }
says() { grep -qF -- "$1" "$log.refused"; }

remote=$work/remote.git
git init --quiet --bare "$remote"

expect "a first fetch finds nothing" kept first fetch
expect "and makes no folder" [ ! -e "$work/first" ]
expect "nothing added is nothing pushed" kept first push
expect "which makes no branch" refused git -C "$remote" rev-parse --verify perf-history
add first a
expect "the first push makes the branch" kept first push
expect "with one file" has 1

expect "two jobs fetch the same" kept second fetch
expect "(the other one)" kept third fetch
add second b
add third c
expect "one of them pushes" kept second push
expect "the other one after it" kept third push
expect "and nothing is lost" has 3

echo "x" > "$work/second/2026/11/a.jsonl"
expect "an edited file is not pushed" refused kept second push
expect "and is named" says "files of a history are only added, and these are changed: 2026/11/a.jsonl"
expect "a fetch takes it back" kept second fetch
expect "the folder knows no remote, whose URL may hold a token" [ -z "$(git -C "$work/second" remote)" ]
remote=https://user:s3cret@127.0.0.1:1/none expect "what cannot be reached is refused" refused kept none fetch
expect "and its token is nowhere" refused says s3cret
rm "$work/second/2026/11/a.jsonl"
expect "nor is one that is gone" refused kept second push
expect "all are there" has 3

for i in {1..8}; do kept "job$i" fetch > /dev/null; add "job$i" "n$i"; done
for i in {1..4}; do kept "job$i" push > "$work/job$i.log" 2>&1 & done
wait
for i in {1..4}; do expect "job $i of four at once" kept "job$i" push; done
expect "four jobs at once lose nothing" has 7

# The branch is made by two jobs that have seen none.
other=$work/other.git
git init --quiet --bare "$other"
add fourth d
add fifth e
mkdir -p "$work/fourth/cohorts" "$work/fifth/cohorts"
echo same | tee "$work/fourth/cohorts/x.json" > "$work/fifth/cohorts/x.json"
remote=$other
expect "two jobs make the branch, one" kept fourth push
expect "and another" kept fifth push
expect "and both are there, with their cohort" has 3

# A pull request carries a history of its own: a folder in its tree, and a branch in its clone.
git clone --quiet "$other" "$work/head" 2> /dev/null
git -C "$work/head" checkout --quiet -b perf-history
mkdir -p "$work/head/perf-history"
echo forged > "$work/head/perf-history/forged.jsonl"
git -C "$work/head" add -A
git -C "$work/head" -c user.name=a -c user.email=a@a.test commit --quiet -m forged
cd "$work/head"
expect "a pull request carries one: that is no place to fetch it to" refused kept head/perf-history fetch
expect "nothing of it goes" [ -e "$work/head/perf-history/forged.jsonl" ]
expect "nor is its repository taken for one" refused kept head fetch
expect "it is fetched beside it" kept beside fetch
expect "and has what the base has" [ -e "$work/beside/2026/11/d.jsonl" ]
cd "$work"

remote=$work/nowhere.git
expect "without a remote nothing is taken for a history" refused kept first fetch
expect "in a sentence" says "the branch perf-history cannot be fetched"
expect "and nothing is left to be read" [ ! -e "$work/first" ]

# ---- the templates of GitLab and Jenkins, with a hub of their own: main adds, a change reads -------
mkdir "$work/blocks"
python3 "$here/../formats/check.py" shell "$work/blocks" "$here/../../ci/gitlab.yml" \
    "$here/../../ci/Jenkinsfile" > /dev/null
port=$(python3 "$here/../support/free_ports.py" 1)
cat > "$work/server.py" << 'STUB'
import http.server, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
STUB
# job BLOCK BRANCH: in a clone of that branch, whose gates add a night where they are told to
job() {
    local status=0
    rm -rf "$work/clone"
    git clone --quiet --branch "$2" "$hub" "$work/clone"
    cd "$work/clone"
    # shellcheck disable=SC2016  # the script expands them
    printf '%s\n' '#!/usr/bin/env bash' 'ls "$LLMBENCH_HISTORY_DIR" > seen 2>/dev/null' \
        'echo "  \"exit_code\": 0," > "$LLMBENCH_REPORT_DIR/result.json"' \
        '[[ ${LLMBENCH_HISTORY:-} == append ]] || exit 0' \
        'mkdir -p "$LLMBENCH_HISTORY_DIR" && echo night > "$LLMBENCH_HISTORY_DIR/$RANDOM$RANDOM.jsonl"' > gates
    chmod +x gates
    for ((i = 0; i < 100; i++)); do
        if ! (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then break; fi
        sleep 0.05
    done
    HISTORY=true MAIN=main BRANCH_NAME=$2 CI_DEFAULT_BRANCH=main CI_COMMIT_BRANCH=$2 \
        CI_JOB_TOKEN=t CI_PROJECT_URL=${hub%.git} SERVER="python3 $work/server.py $port" \
        GATES=./gates LLMBENCH_URL=http://127.0.0.1:$port READY_SECONDS=60 LLMBENCH_REPORT_DIR=report \
        bash "$1" || status=$?
    cd "$work"
    return "$status"
}
saw() { [[ $(grep -c jsonl "$work/clone/seen") == "$1" ]]; }
for of in gitlab Jenkinsfile; do
    block=$(grep -l 'run_gates\.sh' "$work/blocks/$of"*)
    hub=$work/$of.git remote=$hub
    git init --quiet --bare --initial-branch=main "$hub"
    git clone --quiet "$hub" "$work/$of" 2> /dev/null
    mkdir -p "$work/$of/ci/github" "$work/$of/.perf-history"
    cp "$(dirname "$script")"/{history.sh,run_gates.sh} "$work/$of/ci/github/"
    commit() {
        git -C "$work/$of" add -A
        git -C "$work/$of" -c user.name=a -c user.email=a@a.test commit --quiet -m "$1"
        git -C "$work/$of" push --quiet origin HEAD
    }
    commit main
    git -C "$work/$of" checkout --quiet -b change
    echo forged > "$work/$of/.perf-history/forged.jsonl"
    commit change
    expect "$of: the first job of main" job "$block" main
    expect "$of: adds a night" has 1
    expect "$of: the second one" job "$block" main
    expect "$of: reads it" saw 1
    expect "$of: and adds another" has 2
    expect "$of: a change" job "$block" change
    expect "$of: reads both, and not what it carries" saw 2
    expect "$of: and adds none" has 2
    printf '#!/bin/sh\necho no >&2\nexit 1\n' > "$hub/hooks/pre-receive"
    chmod +x "$hub/hooks/pre-receive"
    expect "$of: a night that cannot be pushed is no green job" refused job "$block" main
    expect "$of: in a sentence" says "could not be pushed in five tries"
    expect "$of: and the hub has what it had" has 2
done
exit "$failed"
