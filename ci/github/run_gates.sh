#!/usr/bin/env bash
# Starts a server (and one to compare with), runs gates, which wait until both answer, and ends the
# servers: what the templates for GitHub, GitLab and Jenkins and llmbench_add_gate() have in common.
# Needs bash, Perl, and log.pl beside it. All of it comes from variables:
#   GATES              the command; run with -e and pipefail, so `./gates | tee log` is as red as ./gates
#   SERVER             a command that stays in the foreground; empty: something else has started it.
#                      Arguments of this script are such a command, too, word by word
#   BASELINE_SERVER    the same for the server to compare with; it begins once the first one answers
#   LLMBENCH_URL, LLMBENCH_BASELINE_URL    where they answer; the first is http://127.0.0.1:8000 by default
#   READY_SECONDS      how long they may take to be ready, 600: LLMBENCH_READY_WITHIN of the gates
#   READY_PATH         what answers 200 then; by default the API's path: LLMBENCH_READY_PATH of the gates
#   LLMBENCH_REPORT_DIR    a folder of its own, llmbench-report; the servers' logs are beside the reports
#   SKIPPED=green      exits with 0, and a notice, where it would exit with 77
# Exits with the worse of what the command ends with and what its gates have written down; with 3 where
# they have written nothing, a server was not there to the end, or another one was there before. SIGINT
# and SIGTERM reach the gates as SIGTERM; seven seconds later everything is over, reports included. Then
# neither a link to what lies elsewhere nor a key is left in the report folder.
# shellcheck disable=SC2317  # functions are called by traps
set -eo pipefail  # not -u: the bash of macOS takes an empty list for none

# What steers the job, and what writes to the repository, is for nobody whom it starts: files whose
# lines are commands for later steps, and tokens. /proc shows a process as it was started, so it
# starts anew without them.
if [[ ${RUN_GATES-} != "$$" ]]; then
    without=()
    for name in GITHUB_{ENV,PATH,STATE,TOKEN} GH_TOKEN PERF_HISTORY_TOKEN HISTORY_TOKEN "${!ACTIONS_@}" \
        "${!GIT_CONFIG_KEY_@}" "${!GIT_CONFIG_VALUE_@}" GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS \
        "${!CI_JOB_TOKEN@}" "${!CI_JOB_JWT@}" CI_REPOSITORY_URL CI_REGISTRY_PASSWORD CI_DEPLOY_PASSWORD \
        CI_DEPENDENCY_PROXY_PASSWORD; do
        without+=(-u "$name")
    done
    exec env "${without[@]}" "RUN_GATES=$$" bash "${BASH_SOURCE[0]}" "$@"
fi
unset RUN_GATES
error=${GITHUB_ACTIONS:+::error::}
refuse() { echo "${error}run_gates.sh: $1"; exit 2; }

[[ $GATES ]] || refuse "GATES must be set: it is the command that runs the gates"
command -v perl > /dev/null || refuse "it needs Perl, which is not installed"
log_pl=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/log.pl
if (($#)); then server=("$@"); elif [[ $SERVER ]]; then server=(bash -c "$SERVER"); else server=(); fi
export LLMBENCH_URL=${LLMBENCH_URL:-http://127.0.0.1:8000}
export LLMBENCH_REPORT_DIR=${LLMBENCH_REPORT_DIR:-llmbench-report}
reports=$LLMBENCH_REPORT_DIR
if [[ ${server[0]} || $BASELINE_SERVER ]]; then
    export LLMBENCH_READY_WITHIN=${READY_SECONDS:-${LLMBENCH_READY_WITHIN:-600}}
    if [[ $READY_PATH ]]; then export LLMBENCH_READY_PATH=$READY_PATH; fi
    export LLMBENCH_SKIP_WITHOUT_SERVER=0  # a server of ours that is not there is no reason to skip
fi

# Of this run alone: a runner may keep its workspace, and a link may come with a checkout. Only files
# that have our names go.
if [[ -L $reports ]]; then refuse "LLMBENCH_REPORT_DIR=$reports is a link: name a folder of its own"; fi
mkdir -p "$reports" || refuse "LLMBENCH_REPORT_DIR=$reports cannot be made"
(cd "$reports" && rm -f {result.json,junit.xml,summary.md,metrics.txt,report.html,curves.csv}{,.tmp} \
    answers.jsonl{,.tmp} records.jsonl events.bin ended-early {baseline-,}server.log {server,baseline}-[0-9]*.log) ||
    refuse "LLMBENCH_REPORT_DIR=$reports: reports of an earlier run cannot be removed"
if [[ $(find "$reports" ! -type d ! -type f) ]]; then
    refuse "LLMBENCH_REPORT_DIR=$reports holds a link, or another thing that is no file: name a folder of its own"
fi
work=$(mktemp -d)
touch "$work/began"
before=$(find "$reports" -name result.json)  # deeper: of ctest, which gives each gate a folder

started=() names=() logs=() gates='' signal=''
gates_may=4 servers_may=2 logs_may=1  # seconds after a signal: a runner waits for 7.5 before it says more
# end SECONDS GROUP...: SIGTERM, and SIGKILL to those of whom anybody is there so many seconds later
end() {
    local group alive tenths=$(($1 * 10))
    shift
    for group; do kill -s TERM -- "-$group" 2> /dev/null || true; done
    for (( ; tenths > 0; tenths--)); do
        alive=
        for group; do if kill -0 -- "-$group" 2> /dev/null; then alive=1; fi; done
        if [[ ! $alive ]]; then return 0; fi  # with no number it would be the status that a trap began with
        sleep 0.1 || true
    done
    for group; do kill -s KILL -- "-$group" 2> /dev/null || true; done
}
lives() { kill -0 "$1" 2> /dev/null; }
# Ends the servers with all their children, completes their logs, and takes links out.
stop() {
    local pid tenths
    if [[ $gates ]]; then end "$gates_may" "$gates"; fi
    end "$([[ $signal ]] && echo "$servers_may" || echo 10)" "${started[@]}"
    for pid in "${logs[@]}"; do
        for ((tenths = logs_may * 10; tenths > 0; tenths--)); do if lives "$pid"; then sleep 0.1 || true; fi; done
        kill -s TERM "$pid" 2> /dev/null || true  # whoever left his group may hold it open
        wait "$pid" 2> /dev/null || true
    done
    started=() logs=() gates=''
    find "$reports" -depth ! -type d ! -type f -delete || true
}
finish() {
    local status=$1
    trap - EXIT
    stop
    rm -rf "$work"
    if [[ $GITHUB_OUTPUT ]]; then echo "status=$status" >> "$GITHUB_OUTPUT"; fi
    if [[ $status == 77 && $SKIPPED == green ]]; then
        echo "${GITHUB_ACTIONS:+::notice::}the gates were skipped: nothing was shown"
        status=0
    fi
    exit "$status"
}
trap 'finish $?' EXIT
trap 'signal=1' INT TERM HUP

is_free() { printf %s "$1" | perl "$log_pl" is-free; }
check_free() {
    local status=0
    is_free "$2" || status=$?
    if ((status == 0)); then return 0; fi
    echo "${error}the $1 needs a URL of its own: something is there already, or it is no URL"
    exit 3
}
# In a process group of its own, on Linux and on macOS, where signals are not ignored.
apart() {
    set -m
    "$@" < /dev/null &
    set +m
}
# start NAME COMMAND...: its log beside the reports
start() {
    local name=$1
    shift
    mkfifo "$work/$name"
    : > "$reports/$name.log"  # of a job that is cancelled before Perl runs, too
    set -m
    perl "$log_pl" keep "$reports/$name.log" < "$work/$name" &
    logs+=("$!")
    set +m
    apart env -u GITHUB_OUTPUT -u GITHUB_STEP_SUMMARY "$@" > "$work/$name" 2>&1
    started+=("$!") names+=("$name")
}
if [[ ${server[0]} ]]; then check_free server "$LLMBENCH_URL"; fi
if [[ $BASELINE_SERVER ]]; then check_free baseline-server "$LLMBENCH_BASELINE_URL"; fi
if [[ ${server[0]} ]]; then start server "${server[@]}"; fi
apart env -u GITHUB_OUTPUT bash --noprofile --norc -eo pipefail -c "$GATES"
gates=$!
waits_for=$BASELINE_SERVER
lost=
while lives "$gates" && [[ ! $signal ]]; do
    for i in "${!started[@]}"; do if ! lives "${started[$i]}"; then lost=1; fi; done
    if [[ $lost ]]; then break; fi
    # Two that load at once would measure each other's memory.
    if [[ $waits_for ]] && { [[ ! ${server[0]} ]] || ! is_free "$LLMBENCH_URL"; }; then
        start baseline-server bash -c "$waits_for"
        waits_for=
    fi
    sleep 0.3 || true
done
if [[ $signal || $lost ]]; then end "$gates_may" "$gates"; fi
status=0
wait "$gates" 2> /dev/null || status=$?
if [[ $signal ]]; then status=3; fi
sleep 0.1  # a shell hears of a child that has ended when it waits for one
ended=()
for i in "${!started[@]}"; do if ! lives "${started[$i]}"; then ended+=("${names[$i]}"); fi; done
all=("${names[@]}")
stop

# Whatever the command made of it: the gates have written down how they ended. The order of exit codes
# is that of several gates; others, such as 127, stand before 77.
rank() { case $1 in 1) echo 5 ;; 2) echo 4 ;; 3) echo 3 ;; 77) echo 1 ;; 0 | '') echo 0 ;; *) echo 2 ;; esac; }
told=none
while IFS= read -r result; do
    if [[ $'\n'$before$'\n' == *$'\n'$result$'\n'* && ! $result -nt $work/began ]]; then continue; fi
    code=$(sed -n 's/^  "exit_code": \([0-9]*\),$/\1/p' "$result")
    if [[ $told == none ]] || (($(rank "$code") > $(rank "$told"))); then told=$code; fi
done < <(find "$reports" -type f -name result.json)
if [[ $told == none ]]; then
    if [[ $status == 0 || $status == 77 ]]; then
        echo "${error}the command ended with $status and left no result.json in $reports: no gate ran, or its" \
            "reports are elsewhere (LLMBENCH_REPORT_DIR)"
        status=3
    fi
elif (($(rank "$told") > $(rank "$status"))); then
    echo "${error}the command ended with $status, but its gates with $told"
    status=$told
fi
for name in "${ended[@]}"; do
    echo "${error}the $name ended before the gates did: something else may have answered them"
    : > "$reports/ended-early"  # what was measured is for no history
    if (($(rank "$status") < $(rank 3))); then status=3; fi
done
if [[ $status == 3 ]]; then
    for name in "${all[@]}"; do
        echo "the end of the log of the $name:"
        perl "$log_pl" show "$reports/$name.log"
    done
fi
exit "$status"
