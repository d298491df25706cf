#!/usr/bin/env bash
# Starts a server (and one to compare with), waits until both answer, runs gates, ends the servers:
# what the templates for GitHub, GitLab and Jenkins have in common. All of it comes from variables:
#   GATES              the command; run with -e and pipefail, so `./gates | tee log` is as red as ./gates
#   SERVER             a command that stays in the foreground; empty: something else has started it
#   BASELINE_SERVER    the same for the server to compare with
#   LLMBENCH_URL, LLMBENCH_BASELINE_URL    where they answer
#   READY_PATH, READY_SECONDS              what answers 200 once they are ready (/health), and until when
#   LLMBENCH_REPORT_DIR                    made anew; the servers' logs are beside the reports
# Exits as the gates do; with 3 where a server was not ready, not there to the end, or another one was
# there before. Then neither a link to what lies elsewhere nor a key is left in the report directory.
# shellcheck disable=SC2317  # functions are called by traps
set -eo pipefail  # not -u: the bash of macOS takes an empty list for none
if [[ -z $GATES || -z $LLMBENCH_URL ]]; then
    echo "run_gates.sh: GATES and LLMBENCH_URL must be set"
    exit 2
fi
export LLMBENCH_REPORT_DIR=${LLMBENCH_REPORT_DIR:-llmbench-report}
ready_path=${READY_PATH:-/health} ready_seconds=${READY_SECONDS:-600}
error=${GITHUB_ACTIONS:+::error::}

# Of this run alone: a runner may keep its workspace, and a link may come with a checkout.
rm -rf "$LLMBENCH_REPORT_DIR"
mkdir -p "$LLMBENCH_REPORT_DIR"

# What steers the job, and what writes to the repository, is for nobody whom it starts: files whose
# lines are commands for later steps, and tokens of the runner.
of_the_runner=()
for name in GITHUB_{ENV,PATH,OUTPUT,STATE,TOKEN} GH_TOKEN PERF_HISTORY_TOKEN "${!ACTIONS_@}" \
    "${!CI_JOB_TOKEN@}" "${!CI_JOB_JWT@}" CI_REPOSITORY_URL CI_REGISTRY_PASSWORD CI_DEPLOY_PASSWORD \
    CI_DEPENDENCY_PROXY_PASSWORD; do
    of_the_runner+=(-u "$name")
done

# Lines without keys: the values of variables that are named as such, and what a URL has of them.
masked() {
    LC_ALL=C awk 'function keep(s) { if (length(s) >= 8) keys[++n] = s }
        BEGIN {
            for (name in ENVIRON) {
                value = ENVIRON[name]
                if (name ~ /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|AUTH)(_|$)/) keep(value)
                if (name !~ /^LLMBENCH_.*URL$/) continue
                sub(/^[a-z]*:\/\//, "", value)
                if (match(value, /^[^\/?@]*@/)) keep(substr(value, 1, RLENGTH - 1))
                parts = index(value, "?") ? split(substr(value, index(value, "?") + 1), part, "&") : 0
                for (i = 1; i <= parts; i++)
                    if (part[i] !~ /^[^=]*version/) keep(substr(part[i], index(part[i], "=") + 1))
            }
            for (i = 2; i <= n; i++)  # the longest first: one may be part of another
                for (j = i; j > 1 && length(keys[j]) > length(keys[j - 1]); j--) {
                    s = keys[j]; keys[j] = keys[j - 1]; keys[j - 1] = s
                }
        }
        { for (i = 1; i <= n; i++) {
              told = ""
              while (at = index($0, keys[i])) {
                  told = told substr($0, 1, at - 1) "***"
                  $0 = substr($0, at + length(keys[i]))
              }
              $0 = told $0
          }
          print }'
}
# A log as words: nothing in it is a command for the runner.
as_words() {
    masked | tr '\r' '\n' | LC_ALL=C sed -e 's/[[:cntrl:]]/?/g' -e 's/##/# #/g' -e 's/^/    | /'
}

started=() names=()
# Ends the servers with all their children, and ten seconds later by force.
stop() {
    local try pid alive
    for pid in "${started[@]}"; do kill -s TERM -- "-$pid" 2> /dev/null || true; done
    for ((try = 0; try < 50; try++)); do
        alive=
        for pid in "${started[@]}"; do
            if kill -0 -- "-$pid" 2> /dev/null; then alive=1; fi
        done
        if [[ -z $alive ]]; then return; fi
        sleep 0.2
    done
    for pid in "${started[@]}"; do kill -s KILL -- "-$pid" 2> /dev/null || true; done
}
# What is kept: no links to what lies elsewhere, and no key in a log.
clean() {
    local log
    find "$LLMBENCH_REPORT_DIR" -depth ! -type d ! -type f -delete
    for log in "$LLMBENCH_REPORT_DIR"/*.log; do
        if [[ ! -f $log ]]; then continue; fi
        masked < "$log" > "$log.tmp"
        mv "$log.tmp" "$log"
    done
}
trap 'stop; clean' EXIT
trap 'exit 143' INT TERM

# seen URL: the HTTP status at its ready path, 000 where nobody listens; never through a proxy, for the
# gates go straight to the server
seen() {
    curl -s --noproxy '*' -o /dev/null --max-time 2 -w '%{http_code}' "$(ready_at "$1")" ||
        if [[ $? == 28 ]]; then echo " and silence"; fi
}
ready_at() {
    local url=${1%%\?*}
    echo "${url%/}/${ready_path#/}"
}
# Nobody is there, or a gateway with nobody behind it.
is_free() { case $(seen "$1") in 000 | 502 | 504) ;; *) return 1 ;; esac; }
lives() { kill -0 "$1" 2> /dev/null; }
log_of() { echo "$LLMBENCH_REPORT_DIR/$1.log"; }
# start NAME COMMAND URL: in a process group of its own, its log beside the reports
start() {
    local name=$1 command=$2 url=$3 pid end state
    if [[ -z $command ]]; then return; fi
    if [[ -z $url ]] || ! is_free "$url"; then
        echo "${error}the $name needs a URL of its own: '$url' is none, or something is there already" |
            masked
        exit 3
    fi
    set -m  # which is what makes a group of it, on Linux and on macOS
    env "${of_the_runner[@]}" -u GITHUB_STEP_SUMMARY bash -c "$command" \
        > "$(log_of "$name")" 2>&1 < /dev/null &
    pid=$!
    set +m
    started+=("$pid") names+=("$name")
    end=$((SECONDS + ready_seconds))
    while ((SECONDS < end)); do
        state=$(seen "$url")
        # Whatever answers: ours may have found its port taken.
        if ! lives "$pid"; then break; fi
        if [[ $state == 200 ]]; then return; fi
        sleep 0.2
    done
    echo "${error}the $name was not ready at $(ready_at "$url"); the end of its log follows" | masked
    tail -n 40 "$(log_of "$name")" | as_words
    exit 3
}
start server "$SERVER" "$LLMBENCH_URL"
start baseline-server "$BASELINE_SERVER" "$LLMBENCH_BASELINE_URL"

status=0
env "${of_the_runner[@]}" bash --noprofile --norc -eo pipefail -c "$GATES" ||
    status=$?
# Whatever the command made of it: the gates have written down how they ended.
result=$LLMBENCH_REPORT_DIR/result.json told=
if [[ -f $result && ! -L $result ]]; then
    told=$(sed -n 's/^  "exit_code": \([0-9]*\),$/\1/p' "$result")
fi
if [[ $status == 0 && ${told:-0} != 0 ]]; then
    echo "${error}the command ended with 0, but its gates with $told"
    status=$told
fi
for i in "${!started[@]}"; do
    if lives "${started[$i]}"; then continue; fi
    echo "${error}the ${names[$i]} ended before the gates did: something else may have answered" \
        "them; the end of its log follows"
    tail -n 40 "$(log_of "${names[$i]}")" | as_words
    : > "$LLMBENCH_REPORT_DIR/ended-early"  # what was measured is for no history
    if [[ $status == 0 || $status == 77 ]]; then status=3; fi
done
exit "$status"
