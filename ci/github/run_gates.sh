#!/usr/bin/env bash
# Runs gates in CI: what the templates for GitHub, GitLab and Jenkins have in common. The gates start and end
# their servers themselves. All of it comes from variables:
#   GATES                      the command; run with -e and pipefail, so `./gates | tee log` is as red as ./gates
#   SERVER, BASELINE_SERVER    commands that stay in the foreground: LLMBENCH_SERVER, LLMBENCH_BASELINE_SERVER
#   READY_SECONDS, READY_PATH  LLMBENCH_READY_WITHIN, LLMBENCH_READY_PATH
#   LLMBENCH_URL               http://127.0.0.1:8000 by default
#   LLMBENCH_REPORT_DIR        llmbench-report by default; reports of an earlier run in it are removed
#   SKIPPED=green              exits with 0, and a notice, where it would exit with 77
# Exits with what the command ends with; with 3 if it ends with 0 or 77 and its gates have written nothing.
# SIGINT and SIGTERM reach the gates as SIGTERM: they write their reports and end their servers.
set -eo pipefail  # not -u: the bash of macOS takes an empty list for none

# What steers the job, and what writes to the repository, is for no server and no gate: files whose lines
# are commands for later steps, and tokens. /proc shows a process as it was started, so this starts anew
# without them.
output=$GITHUB_OUTPUT
if [[ ${RUN_GATES-} != "$$" ]]; then
    without=()
    for name in GITHUB_{ENV,PATH,STATE,TOKEN} GH_TOKEN PERF_HISTORY_TOKEN HISTORY_TOKEN "${!ACTIONS_@}" \
        "${!GIT_CONFIG_KEY_@}" "${!GIT_CONFIG_VALUE_@}" GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS \
        "${!CI_JOB_TOKEN@}" "${!CI_JOB_JWT@}" CI_REPOSITORY_URL CI_REGISTRY_PASSWORD CI_DEPLOY_PASSWORD \
        CI_DEPENDENCY_PROXY_PASSWORD; do
        without+=(-u "$name")
    done
    exec env "${without[@]}" "RUN_GATES=$$" bash "${BASH_SOURCE[0]}"
fi
unset RUN_GATES GITHUB_OUTPUT
wrong() { echo "${GITHUB_ACTIONS:+::error::}$1"; }
refuse() { wrong "run_gates.sh: $1"; exit 2; }

[[ $GATES ]] || refuse "GATES must be set: it is the command that runs the gates"
# take VARIABLE VALUE: it is set for the gates, unless the value is empty
take() { if [[ $2 ]]; then export "$1=$2"; fi; }
take LLMBENCH_SERVER "$SERVER"
take LLMBENCH_BASELINE_SERVER "$BASELINE_SERVER"
take LLMBENCH_READY_WITHIN "$READY_SECONDS"
take LLMBENCH_READY_PATH "$READY_PATH"
if [[ $SERVER || $BASELINE_SERVER ]]; then export LLMBENCH_SKIP_WITHOUT_SERVER=0; fi  # it is theirs
export LLMBENCH_URL=${LLMBENCH_URL:-http://127.0.0.1:8000}
export LLMBENCH_REPORT_DIR=${LLMBENCH_REPORT_DIR:-llmbench-report}
mkdir -p "$LLMBENCH_REPORT_DIR" || refuse "LLMBENCH_REPORT_DIR=$LLMBENCH_REPORT_DIR cannot be made"
# A runner may keep its workspace. ctest gives each gate a folder.
find -H "$LLMBENCH_REPORT_DIR" '(' -name result.json -o -name junit.xml -o -name summary.md -o -name metrics.txt ')' -delete

set -m  # a process group of its own
bash --noprofile --norc -eo pipefail -c "$GATES" < /dev/null &
gates=$!
set +m
signal=
trap 'signal=1; kill -s TERM -- "-$gates" 2> /dev/null || true' INT TERM HUP
status=0
# A signal ends a wait, and the gates go on to their reports.
while wait "$gates" || status=$?; kill -0 "$gates" 2> /dev/null; do status=0; done
if [[ $signal ]]; then
    status=3
    # In a pipeline the shell may be gone before the gates.
    for ((tenths = 60; tenths > 0; tenths--)); do if kill -0 -- "-$gates" 2> /dev/null; then sleep 0.1; fi; done
fi
kill -s KILL -- "-$gates" 2> /dev/null || true  # what the command has left running

if [[ $status == 0 || $status == 77 ]] && [[ ! $(find -H "$LLMBENCH_REPORT_DIR" -name result.json) ]]; then
    wrong "the command ended with $status and left no result.json in $LLMBENCH_REPORT_DIR: no gate ran, or its reports are elsewhere (LLMBENCH_REPORT_DIR)"
    status=3
fi
if [[ $output ]]; then echo "status=$status" >> "$output"; fi
if [[ $status == 77 && $SKIPPED == green ]]; then
    echo "${GITHUB_ACTIONS:+::notice::}the gates were skipped: nothing was shown"
    status=0
fi
exit "$status"
