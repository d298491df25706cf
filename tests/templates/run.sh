#!/usr/bin/env bash
# The workflows for GitHub do what they say: each runs here with real gates and real servers. What
# builds, apt-get and gh are stand-ins; everything else is the template's own. runner.sh has the others.
#   tests/templates/run.sh GATES SERVER        outcomes_gates, outcomes_no_doctest
set -euo pipefail
export GATES SERVER_PROGRAM
GATES=$(realpath "${1:?usage: run.sh GATES SERVER}")
SERVER_PROGRAM=$(realpath "${2:?usage: run.sh GATES SERVER}")
here=$(cd "$(dirname "$0")" && pwd)
ci=$(cd "$here/../../ci" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" "${!GITHUB_@}" no_proxy NO_PROXY
export LC_ALL=C LLMBENCH_PROGRESS=off
# shellcheck source=tests/support/too_busy.sh
source "$here/../support/too_busy.sh"
# Nobody is there: what asks through it sees no server.
export http_proxy=http://127.0.0.1:1
failed=0 stalled=''
log=$work/log

# expect WHAT COMMAND...: it succeeds
expect() {
    if "${@:2}"; then echo "ok: $1"; return; fi
    if [[ -e $log ]] && was_too_busy "$log"; then
        stalled=$1
        stalled "$1"
        return
    fi
    failed=1
    echo "WRONG: $1"
    sed 's/^/    | /' "$log"
}
# shellcheck disable=SC2317  # called through expect
says() { grep -qF -- "$1" "${2:-$log}"; }
# shellcheck disable=SC2317  # called through expect
nothing_listens() {
    local port
    for port; do
        if (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then return 1; fi
    done
}

# ---- stand-ins -----------------------------------------------------------------------------------
mkdir "$work/bin"
cat > "$work/bin/sudo" << 'STUB'
#!/bin/sh
exec "$@"
STUB
printf '#!/bin/sh\n' > "$work/bin/apt-get"
printf '#!/bin/sh\n' > "$work/bin/make"  # the servers of these commits are scripts
# It "compiles" only what git knows by the name it is given.
cat > "$work/bin/g++" << 'STUB'
#!/usr/bin/env bash
set -e
source= out=
while (($#)); do
    case $1 in
        -o) out=$2; shift ;;
        -* | @*) ;;
        *) source=$1 ;;
    esac
    shift
done
git ls-files --error-unmatch "$source" > /dev/null
echo "compiles $source"
[[ -e .git ]]
printf '#!/bin/sh\nexec "%s" --test-case="%s"\n' "$GATES" "$(cat "$source")" > "$out"
chmod +x "$out"
STUB
cp "$here/gh.py" "$work/bin/gh"
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH

# ---- a repository with two commits ---------------------------------------------------------------
repository=$work/repository
mkdir -p "$repository/perf" "$repository/.github/actions"
cd "$repository"
cp -r "$ci/github" .github/actions/llmbench
echo "head against base" > perf/gates.cpp
# commit WHAT COMMAND: one whose server is COMMAND
commit() {
    printf '#!/bin/sh\n# %s\n%s\n' "$1" "$2" > server
    chmod +x server
    git add -A
    git -c user.name=a -c user.email=a@a.test commit -qm "$1"
    git rev-parse HEAD
}
git init -q .
# shellcheck disable=SC2016  # for the script that it becomes
serve='exec "$SERVER_PROGRAM" serve "$2"'
base=$(commit base "$serve 2")
same=$(commit same "$serve 2")
slower=$(commit slower "$serve 6")
# Another is at its port, and stays there; it ends once a gate has begun.
export OTHER=$work/other
# shellcheck disable=SC2016  # for the script that it becomes
replaced='setsid "$SERVER_PROGRAM" serve "$2" 2 & echo $! > "$OTHER"
until [ -e "$LLMBENCH_REPORT_DIR/records.jsonl" ]; do sleep 0.05; done
echo Address already in use
exit 1'
taken=$(commit taken "$replaced")
broken=$(commit broken "echo no such model; echo ::error::it said; exit 4")
hides=$(
    # shellcheck disable=SC2016  # for the script that it becomes
    commit hides 'echo "key $LLMBENCH_API_KEY, token $HF_TOKEN of $HF_TOKEN"
echo "files of the job: ${GITHUB_ENV:-}${GITHUB_PATH:-}${GITHUB_OUTPUT:-} none"
(trap "" TERM; echo > "$OTHER.deaf"; exec sleep 1000) & echo $! > "$OTHER.pid"; '"$serve 2"
)
export HOSTILE=$here/../outcomes/hostile_server.py
# shellcheck disable=SC2016  # for the script that it becomes
hostile=$(commit hostile 'exec python3 "$HOSTILE" "$2" 31')

# ---- GitHub --------------------------------------------------------------------------------------
read -r port other < <(python3 "$here/../support/free_ports.py" 2)
sed "s/8001/$port/g; s/8000/$other/g" "$ci/github/pull-request.yml" > "$work/pull-request.yml"
sed -i "s#^          url: .*#&/#" "$work/pull-request.yml"  # with or without a slash, it is one URL
export GH_COMMENTS=$work/comments.json
mark='<!-- llmbench llmbench-report -->'
# Somebody else's comment may begin with our mark, and one of ours may have it in its middle.
printf '[{"id": 1, "body": "%s\\nnot ours"}, {"id": 2, "body": "it said %s, see", "mine": true}]' \
    "$mark" "$mark" > "$GH_COMMENTS"
# The one that took a server's place is nobody's to end.
end_other() {
    kill "$(< "$OTHER")" 2> /dev/null || true  # GitHub has ended it: it is an orphan of the job
    rm "$OTHER"
    for ((try = 0; try < 100; try++)); do if nothing_listens "$port"; then break; fi; sleep 0.05; done
}
# pull_request HEAD STATUS [REF]: the workflow, on a fresh runner
pull_request() {
    local status=0
    rm -rf "$work/job"
    mkdir -p "$work/job/workspace"
    python3 "$here/workflow.py" "$work/pull-request.yml" "$work/job/workspace" "$repository" "$1" \
        "$base" "${@:3}" > "$log" 2>&1 || status=$?
    expect "exit code $2" [ "$status" = "$2" ]
    if [[ -e $OTHER ]]; then end_other; fi
    expect "the servers are gone" nothing_listens "$port" "$other"
}
# shellcheck disable=SC2317  # called through expect
comments() {
    python3 - "$1" << 'PY'
import json, os, sys
comments = [c for c in json.load(open(os.environ["GH_COMMENTS"])) if "llmbench-report-macos" not in c["body"]]
assert [c["id"] for c in comments][:2] == [1, 2] and len(comments) == 3, comments
assert comments[0]["body"].endswith("not ours") and comments[1]["body"].startswith("it said")
body = comments[2]["body"]
assert body.startswith("<!-- llmbench llmbench-report -->\n") and sys.argv[1] in body, body
assert "(https://github.test/me/it/actions/runs/1234)" in body, body
PY
}

echo "== a pull request that changes nothing"
pull_request "$same" 0
expect "the comment is made" comments "head against base: "
expect "the step summary" says "head against base" "$work/job/step_summary.md"
expect "the output" says "status=0" "$work/job/output"
for file in report.html junit.xml server.log baseline-server.log; do
    expect "the artifact has $file" [ -s "$work/job/artifacts/llmbench-report/$file" ]
done

echo "== its server ended, and another answers in its place"
pull_request "$taken" 1
expect "the reason" says "the server of LLMBENCH_SERVER exited with status 1"
expect "its log" says "Address already in use" "$work/job/artifacts/llmbench-report/server.log"
expect "the output" says "status=3" "$work/job/output"

echo "== it gets slower"
pull_request "$slower" 1
expect "the same comment is written anew" comments ": failed"
expect "an annotation" says "::error file="
expect "the artifact is kept" [ -s "$work/job/artifacts/llmbench-report/report.html" ]

echo "== its server does not start"
pull_request "$broken" 1
expect "the reason" says "the server of LLMBENCH_SERVER exited with status 4"
expect "its log" says "    | no such model"
expect "nothing of its log is a command" says "    | ::error::it said"
expect "the comment is not that of an earlier run" comments "exited with status 4"

# shellcheck disable=SC2317  # called through expect
is_gone() {  # or nobody has asked yet how it ended
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2> /dev/null) || true
    [[ -z $state || $state == Z* ]]
}
echo "== its server tells a key, and leaves a child that ignores SIGTERM"
LLMBENCH_API_KEY=sk-0123456789 HF_TOKEN=sk-01234567890 pull_request "$hides" 0
expect "the keys are masked" says "key ***, token *** of ***" "$work/job/artifacts/llmbench-report/server.log"
expect "what steers the job is not its" says "files of the job:  none" \
    "$work/job/artifacts/llmbench-report/server.log"
expect "the child is gone" is_gone "$(< "$OTHER.pid")"
expect "the rest is there" [ -s "$work/job/artifacts/llmbench-report/report.html" ]

# only_ours: of all that is printed, no line is a command but those that the templates and the gates write
# shellcheck disable=SC2317  # called through expect
only_ours() {
    ! grep -nP '^(\s|\xc2\xa0)*::' "$log" |
        grep -vE ':::(error|warning) file=[^,]*[.]cpp,line=|:::error::run_gates'
}
echo "== its server's words are long, and commands wherever a line may be broken"
sed -i 's#^          ready-path: .*##; s#^          gates: .*#&\n          ready-path: /v1/models#' "$work/pull-request.yml"
pull_request "$hostile" 1
sed -i '/ready-path: /d' "$work/pull-request.yml"
expect "the gates saw them" says "::error::forged"
expect "no line of them is a command" only_ours

echo "== from a fork, whose token may not write"
FORK=1 pull_request "$same" 0
expect "that is no failure" says "HTTP 403"

echo "== something answers already"
"$SERVER_PROGRAM" serve "$port" > /dev/null &
squatter=$!
until ! nothing_listens "$port"; do sleep 0.05; done
status=0
rm -rf "$work/job"
mkdir -p "$work/job/workspace"
python3 "$here/workflow.py" "$work/pull-request.yml" "$work/job/workspace" "$repository" "$same" \
    "$base" > "$log" 2>&1 || status=$?
expect "that is not measured" [ "$status" = 1 ]
expect "the reason" says "something answers at its URL already"

kill "$squatter"
wait "$squatter" || true
echo "== the workflow of the README, with a wheel that has the header compiled"
cat > "$work/bin/pip" << 'STUB'
#!/bin/sh
echo installs "$2"
STUB
cat > "$work/bin/llmbench" << 'STUB'
#!/bin/sh
[ "$1" = flags ] && echo -DLLMBENCH_PREBUILT -lllmbench
STUB
chmod +x "$work"/bin/*
mkdir ci
cp -r "$ci/github" ci/
cp "$ci/../action.yml" action.yml
# By its path: a launcher of several Pythons would put the folder of one before the stand-ins.
python=$(python3 -c 'import sys; print(sys.executable)')
# of_readme STATUS USES: its job, with a server of ours
of_readme() {
    local status=0
    rm -rf "$work/job"
    mkdir -p "$work/job/workspace"
    sed "s#server: vllm [^,]*#server: ./server --port $port, url: 'http://127.0.0.1:$port'#; s#uses: ./.github/actions/llmbench  .*#uses: $2#" \
        "$ci/../README.md" > "$work/README.md"
    "$python" "$here/workflow.py" "$work/README.md" "$work/job/workspace" "$repository" "$readme" "$base" \
        > "$log" 2>&1 || status=$?
    expect "exit code $1" [ "$status" = "$1" ]
    expect "the output" says "status=0" "$work/job/output"
}
echo "default target" > perf/gates.cpp
readme=$(commit "a gate without a baseline" "$serve 2")
of_readme 0 ./.github/actions/llmbench
expect "the wheel is that of the release" says "installs https://github.com/OWNER/llmbench/releases/download/v"
echo "== the same by the action at the top of a repository"
of_readme 0 ./
((failed == 0)) || exit 1
[[ ! $stalled ]] || exit 77
