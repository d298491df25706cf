#!/usr/bin/env bash
# How gates end: exit codes, what is said, what is left behind.
#   tests/outcomes/run.sh GATES OWN_MAIN NO_DOCTEST [PART...]
# The programs are built from this folder. A part is a function below; none named means all of them.
set -euo pipefail
gates=$(realpath "${1:?usage: run.sh GATES OWN_MAIN NO_DOCTEST [PART...]}")
own_main=$(realpath "$2")
no_doctest=$(realpath "$3")
source=$(cd "$(dirname "$0")" && pwd)/gates.cpp
work=$(mktemp -d)
trap 'kill "${served[@]}" 2> /dev/null || true; rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" NO_COLOR CLICOLOR_FORCE
export LC_ALL=C
export LLMBENCH_REPORT_DIR=$work/report
export SERVER=$no_doctest CHILD=$work/child BASELINE=$work/baselines/chat.json
closed=http://127.0.0.1:1  # nothing listens there
# shellcheck source=tests/support/checks.sh
source "$(dirname "$source")/../support/checks.sh"

# The simulated server in real time, for the cases that are about signals, threads and the clock. Cases
# that run side by side have one each: a gate is invalid if its server answers others, too.
mapfile -t ports < <(python3 "$(dirname "$source")/../support/free_ports.py" 9 | tr ' ' '\n')
served=()
serve() {
    if [[ ${served[$1]:-} ]]; then return; fi
    "$no_doctest" serve "${ports[$1]}" >> "$work/served.log" 2>&1 &
    served[$1]=$!
    wait_for_port "${ports[$1]}"
}
serve 0
export SERVED=http://127.0.0.1:${ports[0]}

# ends STATUS COMMAND...: the same, into empty folders
ends() {
    local command=("${@:2}")
    what="${command[*]/#$work/...}"
    rm -rf "$LLMBENCH_REPORT_DIR" "$CHILD"
    ended "$@"
}
# cases STATUS NAMES [VARIABLE=VALUE...]: so does the program with these test cases
cases() { ends "$1" env "${@:3}" "$gates" --test-case="$2"; }

# says_times N PATTERN: on so many lines
says_times() {
    local n
    n=$(grep -cE -- "$2" "$log" || true)
    if ((n == $1)); then ok; else wrong "it says $n times, not $1: $2"; fi
}
# reported [-e]: every file of a report is there, and not empty but for -e: without requests
reported() {
    local file
    for file in result.json records.jsonl events.bin junit.xml summary.md report.html; do
        holds "the report has no $file" test "${1:--s}" "$LLMBENCH_REPORT_DIR/$file"
    done
}
# summary_says TEXT: the file that a pull request would show
summary_says() { report_says "$1" summary.md; }
# report_says TEXT [FILE]: of the report, result.json where none is named
report_says() {
    holds "${2:-result.json} does not say: $1" grep -qF -- "$1" "$LLMBENCH_REPORT_DIR/${2:-result.json}"
}
line_of() { grep -nF "$1" "$source" | cut -d: -f1; }

# listening COMMAND...: in the background as $pid, and not ignoring SIGINT as a script's jobs do
listening() {
    set -m
    "$@" &
    pid=$!
    set +m
}
# begin NAMES TEXT [LOG]: the program with these test cases, $pid, goes on once its log has that text
begin() {
    local i words=${3:-$log}
    : > "$words"  # before it starts: what an earlier one said there is not waited for
    listening "$gates" --test-case="$1" >> "$words" 2>&1
    for ((i = 0; i < 2400; i++)); do
        if grep -q -- "$2" "$words"; then return; fi
        alive "$pid" || break
        sleep 0.05
    done
    wrong "it never says: $2"
}
# beside COMMAND...: with a report, a log, a server and a child of its own, beside up to five others; what
# came of it is known after all_beside
beside() {
    local own slot=$((${#besides[@]} + 1))
    own=$(mktemp -d "$work/beside.XXXX")
    serve "$slot"
    set -m  # else it would ignore SIGINT, and so would what it starts
    SERVED=http://127.0.0.1:${ports[slot]} in_folder "$own" "$@" > "$own/said" 2>&1 &
    set +m
    besides+=("$! $own")
    if ((${#besides[@]} >= 6)); then all_beside; fi
}
in_folder() {
    set +m
    log=$1/log LLMBENCH_REPORT_DIR=$1/report CHILD=$1/child passed=0 failed=0 stalled=
    "${@:2}"
    echo "$passed $failed $stalled" > "$1/counts"
}
besides=()
all_beside() {
    local one own more wrongs too_busy
    for one in "${besides[@]}"; do
        own=${one#* }
        wait "${one%% *}" || true
        cat "$own/said"
        read -r more wrongs too_busy < "$own/counts" || more=0 wrongs=1
        passed=$((passed + more)) failed=$((failed + wrongs)) stalled=${too_busy:-$stalled}
    done
    besides=()
}
# kill_it: before it can do anything more
kill_it() {
    kill -KILL "$pid"
    wait "$pid" 2> /dev/null || true
}
# alive PID: it runs, and is not merely waiting to be reaped
alive() { [[ -r /proc/$1/stat && $(sed 's/.*) //' "/proc/$1/stat") != Z* ]]; }
child_is_gone() {
    local pid
    pid=$(< "$CHILD")
    if alive "$pid"; then wrong "the grandchild $pid is still there"; kill "$pid"; else ok; fi
}

# ---- one gate, one outcome
one_gate() {
    cases 0 "pass"
    says "PASS" "mean(tpot) <= 1 s" "SUCCESS!"
    reported
    cases 1 "miss"
    says "gates.cpp:$(line_of 'TEST_CASE("miss")'): ERROR: CHECK( mean(tpot) <= 0.5 ms )"
    says_like 'FAIL +mean\(tpot\) <= 0\.5 ms +measured [0-9.]+ ms +interval [0-9.]+ to [0-9.]+ ms (typical repeat [0-9.]+ ms; )?[0-9.]+ % over the limit; (.*; )?2 repeats x 40 requests, moderated t$'
    says_not "client: "
    if [[ $(tail -n 1 "$log") == "report: $LLMBENCH_REPORT_DIR/report.html; run again: $gates --test-case=miss" ]]; then ok
    else wrong "it does not end with the command that runs the gate again"; fi
    reported
    cases 0 "pass" LLMBENCH_VERBOSE=1
    says_like 'PASS +mean\(tpot\) <= 1 s +measured [0-9.]+ ms, .* % inside the limit \(interval .*; the smallest miss this run could show: [0-9.]+ %\), [0-9]+ repeats'
    says "client: in virtual time"
    cases 0 "advisory miss"
    says "WARNING: WARN( advisory(mean(tpot) <= 0.5 ms) )"

    cases 0 "inconclusive"
    says "INCONCLUSIVE" "error_rate <= 0.5 %" "too close to call"
    summary_says "green does not mean shown"
    cases 0 "inconclusive" LLMBENCH_INCONCLUSIVE=warn
    cases 1 "inconclusive" LLMBENCH_INCONCLUSIVE=fail
    says "gates.cpp:" "ERROR: CHECK( error_rate <= 0.5 % )"
    cases 77 "inconclusive" LLMBENCH_INCONCLUSIVE=skip
}

# ---- every gate and every run has its guard on errors
guard_alone() {
    for half in "gate without objectives: half fails" "run without objectives: half fails"; do
        cases 1 "$half"
        says_like 'FAIL +error_rate <= 1 % .*of [0-9]+ failed, limit 1 %'
        reported
    done
    cases 3 "gate without objectives: all fails"
    says "ERROR: CHECK( error_rate <= 1 % )" "none of 40 requests succeeded"
    cases 3 "run without objectives: all fails"
    says "SUCCESS!" "none of 40 requests succeeded"
    ends 1 "$own_main" --test-case="nothing but errors"
    says "own_main.cpp:" "ERROR: CHECK( error_rate <= 1 % )"
}

# ---- refused: the question is at fault
refusals() {
    cases 2 "refused"
    says "below saturation a throughput only measures the arrival rate" "output_throughput >= 400 tok/s"
    says "gates.cpp:$(($(line_of 'TEST_CASE("refused")') + 3)): ERROR"
    cases 2 "default target"
    says "LLMBENCH_URL" "endpoint{" "simulated()"
    cases 2 "default target" LLMBENCH_URL=nonsense
    says 'LLMBENCH_URL is "nonsense"'
    cases 2 "refused CHECK_SLO"
    says "p99(ttft) needs at least 300 measured requests"
    cases 2 "pass" LLMBENCH_SEED=many
    says 'LLMBENCH_SEED is "many": it must be a whole number above 0'
    # A variable that is misspelt would be a gate that does not do what it was asked, and is green.
    local misspelt="LLMBENCH_INCONCLUSIV is set and is no variable of llmbench: is LLMBENCH_INCONCLUSIVE meant?"
    cases 2 "default target" LLMBENCH_URL=$closed LLMBENCH_INCONCLUSIV=fail
    says "$misspelt"
    says_not "Connection refused"
    cases 2 "settings" LLMBENCH_INCONCLUSIV=fail
    says "$misspelt"
    cases 0 "pass" LLMBENCH_API_KEY_B=own LLMBENCH_GPU=0
    ends 2 env LLMBENCH_INCONCLUSIV=fail "$no_doctest" pass
    says "$misspelt"
    ends 2 env LLMBENCH_INCONCLUSIV=fail "$own_main" --test-case=pass
    says "$misspelt"
}

# ---- invalid: the server is not there, or ends
no_server() {
    cases 3 "default target" LLMBENCH_URL=$closed
    says "$closed" "Connection refused"
    cases 77 "default target" LLMBENCH_URL=$closed LLMBENCH_SKIP_WITHOUT_SERVER=1
    says "skipped"
    cases 3 "server gone"
    says "INVALID" "it went away"
    reported
    cases 3 "process ends at once"
    says "exited with status 4 before it was ready" "the model file is broken"
    says_times 1 "the model file is broken on [0-9]"
    cases 3 "process never ready"
    says "was not ready within 1 s" "still loading"
    cases 3 "process crashes"
    says "INVALID" "the server process exited"
}

# ---- what nobody expects, and files that cannot be written: never green
nothing_escapes() {
    # Neither the limit on files is known to the plan, nor the exception to the gate.
    ends 3 bash -c "ulimit -n 110; exec '$no_doctest' 'many threads'"
    says "exception: " "Too many open files"
    summary_says "invalid"
    reported -e
    ends 3 bash -c "ulimit -n 110; exec '$gates' --test-case='many threads'"
    says "gates.cpp:" "ERROR: CHECK( gate({...}) )" "Too many open files"
    ends 3 bash -c "ulimit -n 110; exec '$own_main' --test-case='many threads'"

    # with_full_disk KILOBYTES COMMAND...: no file can grow beyond that
    # shellcheck disable=SC2317  # called by the shells below
    with_full_disk() {
        set -o pipefail
        (trap '' XFSZ; ulimit -f "$1"; exec "${@:2}") 2>&1 | cat
    }
    export -f with_full_disk
    # never_whole PATTERN COMMAND...: a report that is written while the load runs, or after it
    never_whole() {
        ends 3 "${@:2}" "$gates" --test-case=pass
        says "SUCCESS!" "not written whole"
        says_like "$1"
        ends 1 "${@:2}" "$gates" --test-case=miss
        ends 3 "${@:2}" "$no_doctest" pass
        ends 3 "${@:2}" "$own_main" --test-case=pass
    }
    never_whole "(records.jsonl|events.bin): File too large" bash -c 'with_full_disk 1 "$@"' disk
    for file in result.json report.html; do
        # shellcheck disable=SC2016  # for the shell that it is given to
        never_whole "$file: File exists" \
            bash -c 'mkdir -p "$LLMBENCH_REPORT_DIR/$0.tmp"; exec "$@"' "$file"
    done

    # A report that cannot have its name leaves the others there, which say so.
    # shellcheck disable=SC2016  # for the shell that it is given to
    ends 3 bash -c 'mkdir -p "$LLMBENCH_REPORT_DIR/report.html"; exec "$@"' folder "$gates" --test-case=pass
    says "report.html: Is a directory"
    summary_says "not all of them could be written whole"

    # A directory that cannot be made is told of before the server is.
    touch "$work/a file"
    for program in "$gates" "$no_doctest"; do
        ends 2 env LLMBENCH_REPORT_DIR="$work/a file/report" LLMBENCH_URL=$closed "$program" \
            "$([[ $program == "$gates" ]] && echo --test-case="default target" || echo gone)"
        says "the report directory is $work/a file/report: it cannot be written (Not a directory)"
        says_not "Connection refused"
        says_not "report.html"
    done

    ends 3 "$gates" --test-case="the program ends first"
    summary_says "the program ended before this gate did"
}

# ---- ends that come early, from elsewhere or twice
exits() {
    # A gate before main(), of which doctest never hears.
    for how in "0 pass" "1 miss"; do
        cases "${how% *}" "pass" GATE_BEFORE_MAIN="${how#* }"
        says "2 gates: " "gate at" "SUCCESS!"
    done
    ends 1 env GATE_BEFORE_MAIN=1 "$own_main" --test-case=pass
    says "SUCCESS!" "the program ends with 1, as a gate is failed"
    ends 1 env GATE_BEFORE_MAIN=1 "$own_main" --list-test-cases

    # Reports of one's own.
    cases 3 "reports of one's own throw"
    says "SUCCESS!" "told of 0"
    local thrown="^llmbench: a function that on_report was given throws:"
    says_times 1 "$thrown a gate cannot begin while a function of on_report runs: no result"
    says_times 1 "$thrown gates.cpp:[0-9]*: CHECK\\( r.exit_code == 77 \\) does not hold"
    says "llmbench: a function that on_report was given throws: no room\\nleft: no result of this program is a pass" \
        "llmbench: a function that on_report was given throws: no result of this program is a pass" \
        "llmbench: on_report was given a null function: no result of this program is a pass"
    report_says '"exit_code": 3,'
    ends 0 "$own_main" --test-case="told at the end"
    says "told of 0"

    # doctest says green, a gate says red.
    cases 1 "may fail"
    says "SUCCESS!"
    cases 1 "exit after a miss"
    summary_says "the program ended inside this test case"
    cases 3 "exit after a pass"
    summary_says "the program ended inside this test case"
    ends 1 "$own_main" --test-case="exit after a miss"
    # Nothing can be done about _Exit() but to leave nothing green behind.
    cases 0 "_Exit after a miss"
    summary_says "the program had not ended when this was written"
    report_says '"exit_code": 1,'
    ends 1 "$no_doctest" unasked
    says "the program ends with 1, as a gate is failed"
    ends 0 "$no_doctest" explored

    # A test case that fails beside its gates, or without any.
    cases 1 "an exception after a run"
    says "an exception after a run: its test case failed: an exception ended it: what the test case itself did"
    summary_says "### an exception after a run: failed"
    summary_says "what the test case itself did"
    cases 1 "a plain CHECK fails"
    summary_says "### a plain CHECK fails: failed"
    summary_says "CHECK( 1 + 1 == 3 ) does not hold"
    report_says "<testsuites name=\"llmbench\" tests=\"3\" failures=\"1\"" junit.xml
    cases 1 "pass,a unit test that fails"
    summary_says "### a unit test that fails: failed"
    says "2 gates: 1 failed, 1 passed"
}

# ---- what servers say is printed as words: nothing of it is a command, a mention or a link
masked_words_of() {
    # only_words: no line is a command, but for those annotations that are our own
    # (lines as they were printed, for a runner knows no indent)
    only_words() {
        if grep -nP '^(\s|\xc2\xa0|\xe2\x80[\x80-\x8a])*::' "$log.raw" | grep -vE '^[0-9]+:::(error|warning) file=[^,]*tests/outcomes/[a-z]+[.][ch]pp,line='; then
            wrong "a line is a command"
        else ok; fi
        if grep -nE '##[a-z]*\[' "$log"; then wrong "a runner finds a command"; else ok; fi
        if LC_ALL=C grep -n $'[\x01-\x08\x0b-\x1f\x7f]' "$log" ||
            LC_ALL=C grep -nP '\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' "$log"; then
            wrong "it prints control characters"
        else ok; fi
    }
    # no_live_words: outside of code spans nothing but text is left, and every file can be read
    no_live_words() {
        if python3 - "$LLMBENCH_REPORT_DIR" > "$work/live" 2>&1 << 'PY'; then ok; else wrong "$(< "$work/live")"; fi
import json, re, sys, xml.dom.minidom
def text(name): return open(f"{sys.argv[1]}/{name}", encoding="utf-8").read()
outside = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text("summary.md"))
assert not re.search(r"@octocat|#12|#34|https?:|evil|<img|\[link", outside), outside
assert "::error::from the server" in text("summary.md")
page = text("report.html")
scripts = re.findall("<script(?: type=.application/json.)?>", page)  # ours
assert "<img" not in page and page.count("</script>") == len(scripts) == page.count("<script") and "octocat" in page
xml.dom.minidom.parse(sys.argv[1] + "/junit.xml")
json.loads(text("result.json"))
for line in text("records.jsonl").splitlines(): json.loads(line)
PY
    }
    local port pid how
    port=$(python3 "$(dirname "$source")/../support/free_ports.py" 1)
    for how in error stream 7 58; do
        python3 "$(dirname "$source")/hostile_server.py" "$port" "$how" &
        pid=$!
        wait_for_port "$port"
        cases 3 "default target" LLMBENCH_URL="http://127.0.0.1:$port" GITHUB_ACTIONS=true
        kill "$pid"
        wait "$pid" 2> /dev/null || true
        says "::error file="
        only_words
        if [[ $how != [a-z]* ]]; then says "::error::forged"; continue; fi
        says '\n::error::from the server'
        reported -e
        no_live_words
    done

    cases 3 "process with hostile words" GITHUB_ACTIONS=true
    only_words
    says "| ::error::it said" "| #\x23[error]so" "| \x1b[31m::stop-commands::x" "key ***"
    says_not hf_abc
    for name in "process with hostile words" "process that repeats its token"; do
        ends "$([[ $name == *repeats* ]] && echo 0 || echo 3)" "$gates" --test-case="$name"
        report_says 'key ***' server-1.log
        if grep -rn hf_abc "$LLMBENCH_REPORT_DIR" "$log"; then wrong "a secret is told"; else ok; fi
    done
}

# ---- gates of several threads take turns
threads() {
    cases 1 "one of three threads misses"
    says "3 gates: 1 failed, 2 passed"
    reported
    cases 3 "nobody waits for them"
    says "2 gates: 2 invalid"
    summary_says "the program ended before this gate did"
}

# ---- what an earlier run left, what a killed one leaves, and what is not ours
files_of_runs() {
    local reports=(result.json junit.xml summary.md metrics.txt report.html) file
    cases 0 "pass"
    touch "$LLMBENCH_REPORT_DIR/mine.xml"
    what="a run that is killed in its first gate"
    begin "long" "^  process at "
    kill_it
    for file in "${reports[@]}"; do
        if [[ -e $LLMBENCH_REPORT_DIR/$file ]]; then wrong "$file of the run before is still there"; else ok; fi
    done
    if [[ -e $LLMBENCH_REPORT_DIR/mine.xml ]]; then ok; else wrong "it took a file that is not its own"; fi

    what="a run that is killed in its second gate"
    begin "pass,long" "^  process at "
    kill_it
    report_says "the program had not ended when this was written" junit.xml
    report_says "<error" junit.xml
    summary_says "### the rest of the program: invalid"
    report_says '"exit_code": 3,'
    report_says "had not ended" report.html

    # Without standard streams: what is said to nobody is written into no file of the run.
    what="a program that is started without standard streams"
    rm -rf "$LLMBENCH_REPORT_DIR"
    status=0
    "$gates" --test-case=pass <&- >&- 2>&- || status=$?
    if ((status == 0)); then ok; else wrong "exit code $status"; fi
    if grep -qv '^{.*}$' "$LLMBENCH_REPORT_DIR/records.jsonl"; then wrong "what it says is in records.jsonl"; else ok; fi
    reported

    # `./gates | head`: nobody reads any more. Its reports and its exit code are those of any run.
    unread='import os, subprocess, sys; r, w = os.pipe(); os.close(r)
sys.exit(subprocess.call(sys.argv[1:], stdout=w))'
    ends 1 python3 -c "$unread" "$gates" --test-case="miss,pass"
    reported
    report_says '"exit_code": 1,'

    # It asks a question and runs no gate: what is there stays.
    what="a question"
    cases 0 "pass"
    "$gates" --list-test-cases > "$log"
    reported

    # Two programs would take each other's files.
    what="two programs in one directory"
    begin long "^  process at " "$work/other"
    status=0
    "$gates" --test-case=pass > "$log" 2>&1 || status=$?
    if ((status == 2)); then ok; else wrong "exit code $status instead of 2"; fi
    says "the report directory is $LLMBENCH_REPORT_DIR: another program is measuring and writes there"
    kill_it

    # Symbolic links lead elsewhere: they are replaced, and where they lead nothing is written.
    what="symbolic links in the report directory"
    rm -rf "$LLMBENCH_REPORT_DIR"
    mkdir -p "$LLMBENCH_REPORT_DIR"
    echo "not to be written to" > "$work/victim"
    cp "$work/victim" "$work/as it was"
    for file in "${reports[@]}" records.jsonl events.bin server-1.log; do
        ln -s "$work/victim" "$LLMBENCH_REPORT_DIR/$file"
        ln -s "$work/victim" "$LLMBENCH_REPORT_DIR/$file.tmp"
    done
    "$gates" --test-case="process with a child" > "$log" 2>&1 || wrong "it fails"
    reported
    if cmp "$work/victim" "$work/as it was"; then ok; else wrong "a link was followed"; fi
    for file in "${reports[@]}" records.jsonl events.bin server-1.log; do
        if [[ -L $LLMBENCH_REPORT_DIR/$file ]]; then wrong "$file is a link"; else ok; fi
    done
}

# ---- a time budget: what is not decided is inconclusive, what is not measured is not green
time_budget() {
    cases 0 "two seconds a repeat" LLMBENCH_TIME_BUDGET=3.8
    says "LLMBENCH_TIME_BUDGET of 3.8 s is spent after 1 of 5 repeats"
    summary_says "green does not mean shown"
    reported
    cases 1 "two seconds a repeat" LLMBENCH_TIME_BUDGET=3.8 LLMBENCH_INCONCLUSIVE=fail
    cases 77 "two seconds a repeat" LLMBENCH_TIME_BUDGET=1s
    reported -e
    cases 1 "two seconds a repeat" LLMBENCH_TIME_BUDGET=1 LLMBENCH_INCONCLUSIVE=fail
    # A server that is started again has what the budget leaves.
    cases 0 "process whose second start hangs" LLMBENCH_TIME_BUDGET=6s
    says "LLMBENCH_TIME_BUDGET of 6 s is spent after 1 of"
    cases 77 "pass,two seconds a repeat" LLMBENCH_TIME_BUDGET=1.9  # the budget is the program's
    says "passed" "none of 5 was measured"
    # Nothing but doctest's own result is there to say so.
    ends 1 env LLMBENCH_TIME_BUDGET=1 "$own_main" --test-case="cannot be measured in time"
    says "own_main.cpp:" "ERROR: CHECK( mean(tpot) <= 1 s )" "none of 5 was measured"
    cases 3 "a minute to be ready" LLMBENCH_TIME_BUDGET=1
    says "was not ready within" "still loading"
}

# ---- stored baselines
stored_baselines() {
    cases 2 "stored baseline"
    cases 77 "stored baseline" LLMBENCH_WRITE_BASELINE=1
    cases 0 "stored baseline"
    cases 1 "four times slower than stored"
    cases 2 "stored baseline" LLMBENCH_SEED=2
    ends 0 "$own_main" --test-case="stored baseline"
    ends 1 "$own_main" --test-case="four times slower than stored"
    says "own_main.cpp:" "ERROR: CHECK("
}

# ---- calibration judges nothing
calibration() {
    cases 77 "miss" LLMBENCH_CALIBRATE=3
    reported
    cp "$LLMBENCH_REPORT_DIR/calibration.json" "$work/noise.json"
    cases 1 "miss" LLMBENCH_CALIBRATION="$work/noise.json"
    cases 77 "pass,miss" LLMBENCH_CALIBRATE=3
    cases 3 "server gone" LLMBENCH_CALIBRATE=3  # broken is broken
    cases 2 "pass" LLMBENCH_CALIBRATION="$work/none.json"
}

# ---- a history: what is added, what is not, and what stays as it was
histories() {
    local runs=$work/runs
    added() { [[ $(cat "$runs"/*/*/*.jsonl 2> /dev/null | wc -l) == "$1" ]]; }
    with() { cases "$1" "$2" LLMBENCH_HISTORY=append LLMBENCH_HISTORY_DIR="$runs" "${@:3}"; }
    rm -rf "$runs"
    with 0 pass
    says "history: 1 gate added, $runs/20"
    if added 1; then ok; else wrong "it is not one line"; fi
    with 1 miss  # whatever the verdict
    if added 2; then ok; else wrong "a miss was not added"; fi
    with 0 "a few errors"
    says_times 0 "not added to the history: it is invalid"
    with 2 "refused"
    says "not added to the history: "
    with 3 "gate without objectives: all fails"
    says "not added to the history: "
    with 2 "pull request"
    says "LLMBENCH_HISTORY=append, and the baseline is a server"
    with 2 pass LLMBENCH_SHARD=0/2 LLMBENCH_START_AT=2000000000
    says "LLMBENCH_HISTORY=append and LLMBENCH_SHARD are both set"
    with 2 pass LLMBENCH_REHEARSE=1
    says "leaves nothing for later runs"
    # All runs have as many repeats: this gate alone is decided after two.
    if ! grep -qE '"gate":"pass".*"mean\(tpot\)":\[[^],]*,[^],]*,[^],]*\]|"mean\(tpot\)":\[[^],]*,[^],]*,[^],]*\].*"gate":"pass"' "$runs"/*/*/*.jsonl; then
        wrong "a run has not three repeats"
    else ok; fi
    # The reports are told first, and then all that is not whole is red.
    cases 3 pass LLMBENCH_HISTORY=append LLMBENCH_HISTORY_DIR=/proc/nowhere
    says "the history: cannot write /proc/nowhere/cohorts/"
    report_says '"exit_code": 3'
    # Without being asked to nobody touches a folder.
    find "$runs" -type f -printf '%p %T@ %s\n' | sort > "$work/before"
    cases 0 pass LLMBENCH_HISTORY_DIR="$runs"
    find "$runs" -type f -printf '%p %T@ %s\n' | sort | cmp - "$work/before" || wrong "the folder has changed"
    # Held against runs of main.
    rm -rf "$runs"
    against() { cases "$1" "held against runs" LLMBENCH_HISTORY_DIR="$runs" "${@:2}"; }
    against 2
    says "there is no history at $runs: LLMBENCH_HISTORY=append on main makes it"
    against 0 LLMBENCH_HISTORY=append
    says "the history begins with this run" "history: 1 gate added"
    against 0 LLMBENCH_HISTORY=off
    says "LLMBENCH_HISTORY is off"
    against 77 LLMBENCH_REHEARSE=1
    against 77 LLMBENCH_CALIBRATE=3
}

# ---- a rehearsal: never a pass, whatever is asked of it, and nothing is sent or started
rehearsal() {
    local name how
    cases 77 "pass,miss,server gone,process never ready,default target" LLMBENCH_REHEARSE=1
    says "5 gates: 5 rehearsed" "REHEARSAL of 5 gates on a model: nothing was sent"
    says_like 'SKIPPED +mean\(tpot\) <= 0\.5 ms .*a rehearsal: fail on the model; inconclusive in 0 % of the runs; a miss is shown in nine of ten from 5[0-9]* us on'
    says_like 'SKIPPED +mean\(tpot\) <= 1 s .*a rehearsal: pass on the model'
    says_not "still loading"
    reported
    report_says "REHEARSAL" report.html
    report_says '"rehearsal"'
    report_says 'name="rehearsal"' junit.xml
    report_says 'failures="0" errors="0"' junit.xml
    report_says 'rehearsal="yes"' metrics.txt
    summary_says "REHEARSAL of 5 gates"
    # Of whoever's main() it is, of assertions of one's own, of what is measured in other ways.
    for name in pass miss "many threads" "nothing but errors"; do
        ends 77 env LLMBENCH_REHEARSE=1 "$own_main" --test-case="$name"
    done
    for how in pass miss gone judged unasked explored; do
        ends 77 env LLMBENCH_REHEARSE=1 "$no_doctest" "$how"
    done
    ends 77 env LLMBENCH_REHEARSE=1 GATE_BEFORE_MAIN=1 "$own_main" --test-case=pass
    cases 77 "CHECK_SLO misses,a plain CHECK fails,may fail" LLMBENCH_REHEARSE=1
    for name in "exit after a miss" "a plain CHECK fails,exit after a pass"; do
        cases 3 "$name" LLMBENCH_REHEARSE=1
    done
    cases 77 "pull request,head against base,settings,settings of which one is lost" LLMBENCH_REHEARSE=1
    says "settings of which one is lost / lost: rehearsed" "baseline rehearsed on a model"
    cases 77 "long curve" LLMBENCH_REHEARSE=1
    says "long curve / 2 users: rehearsed" "long curve: no capacity is shown, 2 loads"
    cases 77 "miss" LLMBENCH_REHEARSE=1 LLMBENCH_INCONCLUSIVE=fail GITHUB_ACTIONS=true
    says_not "::error"
    # Refused is refused, and says why.
    cases 2 "pass,refused" LLMBENCH_REHEARSE=1
    says "below saturation a throughput only measures the arrival rate"
    cases 77 "two seconds a repeat" LLMBENCH_REHEARSE=1 LLMBENCH_TIME_BUDGET=3.8
    says "LLMBENCH_TIME_BUDGET of 3.8 s is spent after 1 of 5 repeats"

    # A stored baseline is made up as well; nothing is written, and none is made of a rehearsal.
    rm -rf "$work/baselines"
    cases 77 "stored baseline" LLMBENCH_REHEARSE=1
    says_like 'SKIPPED +p50\(tpot\) <= 2 \* baseline .*a rehearsal: pass on the model'
    if [[ -e $work/baselines ]]; then wrong "it wrote a baseline"; else ok; fi
    cp "$LLMBENCH_REPORT_DIR/result.json" "$work/rehearsed.json"
    cases 2 "stored baseline" BASELINE="$work/rehearsed.json"
    says 'was a rehearsal, which is evidence of no server'

    # Fitted to a run that was measured: about as fast, and each gate to the one of its name.
    cases 0 "pass,pull request"
    cp "$LLMBENCH_REPORT_DIR/result.json" "$work/measured.json"
    cases 77 "pass" LLMBENCH_REHEARSE="$work/measured.json"
    says "an engine fitted to "
    what="the pace of a fitted engine"
    if python3 - "$work/measured.json" "$LLMBENCH_REPORT_DIR/result.json" > "$work/pace" 2>&1 << 'PY'
import json, sys
was, now = (next(g for g in json.load(open(f))["gates"] if g["name"] == "pass")["candidate"] for f in sys.argv[1:])
for metric in ("ttft", "tpot"):
    ratio = now[metric]["mean"] / was[metric]["mean"]
    assert 0.7 < ratio < 1.4, f"{metric}: {ratio}"
PY
    then ok; else wrong "$(tail -n 1 "$work/pace")"; fi
    cases 2 "miss" LLMBENCH_REHEARSE="$work/measured.json"
    says 'has no measured gate "miss": it has "pass", "pull request"'
    cases 2 "pass" LLMBENCH_REHEARSE="$work/rehearsed.json"
    cases 2 "pass" LLMBENCH_REHEARSE="$work/none.json"
    says "LLMBENCH_REHEARSE: $work/none.json cannot be read"
    cases 0 "pass" LLMBENCH_REHEARSE=0

    # The result that it is fitted to stays: reports have a directory of their own, or it is refused.
    what="a rehearsal beside the reports of a run"
    mkdir -p "$work/beside/llmbench-report"
    cp "$work/measured.json" "$work/beside/llmbench-report/result.json"
    for how in 1 2; do
        status=0
        (cd "$work/beside" && env -u LLMBENCH_REPORT_DIR LLMBENCH_REHEARSE=llmbench-report/result.json \
            "$gates" --test-case=pass) > "$log" 2>&1 || status=$?
        if ((status == 77)); then ok; else wrong "exit code $status instead of 77"; fi
    done
    says "llmbench-rehearsal/report.html"
    status=0
    (cd "$work/beside" && LLMBENCH_REPORT_DIR=llmbench-report LLMBENCH_REHEARSE=./llmbench-report/result.json \
        "$gates" --test-case=pass) > "$log" 2>&1 || status=$?
    if ((status == 2)); then ok; else wrong "exit code $status instead of 2"; fi
    says "which the rehearsal's own reports would be written over"
    if cmp "$work/measured.json" "$work/beside/llmbench-report/result.json"; then ok
    else wrong "the result is another one"; fi

    what="SIGINT during a rehearsal"
    rm -rf "$LLMBENCH_REPORT_DIR"
    : > "$log"
    listening env LLMBENCH_REHEARSE=1 "$gates" --test-case="an hour of a rehearsal" >> "$log" 2>&1
    for ((i = 0; i < 400; i++)); do grep -q "rehearsed on a model" "$log" && break; sleep 0.05; done
    sleep 0.3
    kill -INT "$pid"
    waited 3
    says "the run was interrupted"
    report_says '"rehearsal"'
}

# ---- progress
progress() {
    for how in auto plain off; do
        cases 0 "pass" LLMBENCH_PROGRESS=$how
        says_not $'\r'
    done
    cases 0 "pass in real time" LLMBENCH_PROGRESS=line
    says_like $'\r  repeat [12] of 2-5.*\x1b\\[K'
    if grep -qP '  repeat [12] of 2-5[^\r\x1b]*\x1b\[K(?!\r)' "$log.raw"; then wrong "it is not cleared before other words"
    else ok; fi
    cases 0 "pass" LLMBENCH_PROGRESS=line  # what is computed takes no time to tell of
    says "simulated in virtual time"
    says_not $'\r'
    cases 0 "pass" CLICOLOR_FORCE=1
    says $'\x1b[32mPASS\x1b[0m'
    cases 0 "pass" CLICOLOR_FORCE=1 NO_COLOR=1
    says_not $'\x1b[32mPASS'
    cases 1 "miss" CLICOLOR_FORCE=1  # doctest's part, too
    says_like $'\x1b.*ERROR'
    cases 1 "miss" CLICOLOR_FORCE=1 NO_COLOR=1
    says "ERROR"
    says_not $'\x1b'
    cases 0 "pass" LC_ALL=C.UTF-8
    says $'\xe2\x9c\x93 PASS'  # a check mark
}

# ---- several gates: 1 before 2 before 3 before 77 before 0
several_gates() {
    cases 1 "pass,miss"
    says "2 gates: 1 failed, 1 passed"
    cases 1 "miss,server gone"
    cases 1 "miss,refused"
    cases 2 "refused,server gone"
    cases 3 "server gone,default target" LLMBENCH_URL=$closed LLMBENCH_SKIP_WITHOUT_SERVER=1
    cases 77 "pass,default target" LLMBENCH_URL=$closed LLMBENCH_SKIP_WITHOUT_SERVER=1
    cases 1 "miss,default target" LLMBENCH_URL=$closed LLMBENCH_SKIP_WITHOUT_SERVER=1
    # It was there, and is lost.
    cases 3 "process whose second start fails" LLMBENCH_SKIP_WITHOUT_SERVER=1
    says "exited with status 4 before it was ready"
}

# ---- assertions of one's own
own_assertions() {
    cases 0 "assertions hold"
    cases 1 "CHECK_SLO misses"
    says "gates.cpp:$(($(line_of 'TEST_CASE("CHECK_SLO misses")') + 2)): ERROR: CHECK(" "goodput(tpot <= 0.5_ms) >= 50_pct"
    says "after the check"
    cases 1 "REQUIRE_SLO misses"
    says "FATAL ERROR: REQUIRE("
    says_not "after the requirement"
    cases 0 "WARN_SLO misses"
    says "WARNING: WARN(" "after the warning"
    cases 1 "a plain CHECK fails"
    cases 0 "run does not assert" GITHUB_ACTIONS=true
    says_like 'FAIL +advisory\(mean\(tpot\) <= 0\.5 ms\)'
    says "::warning" "run does not assert: measured"
    says_not "::error"
}

# ---- doctest's own questions; a run without a gate is not green
questions() {
    for option in --help --version --count --list-test-cases --list-test-suites --list-reporters; do
        ends 0 "$gates" "$option"
        if [[ $option == --help ]]; then says "--test-case" "LLMBENCH_URL" "LLMBENCH_TIME_BUDGET"
        else says_not "LLMBENCH_TIME_BUDGET"; fi
    done
    # What is no option would run every gate; a filter that matches none is no success.
    for argument in chat -tc --test-cas=chat --; do
        ends 2 "$gates" "$argument"
        says "llmbench: \"$argument\" is no option"
        says_not "doctest"
    done
    ends 2 "$gates" -tc pass
    ends 0 "$gates" --dt-test-case=pass --no-intro
    cases 2 "a name that no test case has"
    says "no gate was run: no test case matches the filter; there are \"" "\"pass\"" " and more" "Status: FAILURE!"
    says_not "SUCCESS"
    ends 2 "$gates" --test-suite=typo
    cases 2 "no gate in it"
    says "the test cases that ran have none"
    says_not "matches the filter"
}

# ---- several settings of a server
settings() {
    cases 0 "settings"
    says "settings: 2 settings in turns, 4 rounds"
    reported
    cases 3 "settings of which one is lost"
    says "lost is not compared: process" "the model file is missing" "/ there: measured" "/ lost: invalid"
    says "gates.cpp:$(line_of 'compare(quick({}, within_reach())')"
    cases 77 "settings of which one is lost" LLMBENCH_SKIP_WITHOUT_SERVER=1
    cases 3 "settings of which one does not come back" LLMBENCH_SKIP_WITHOUT_SERVER=1
    says "/ there: measured" "/ gone: invalid" "exited with status 4 before it was ready"
    for how in LLMBENCH_CALIBRATE=3 LLMBENCH_WRITE_BASELINE=1 LLMBENCH_TIME_BUDGET=0.001; do
        cases 77 "settings" "$how"
    done
}

# ---- processes and signals
# shellcheck disable=SC2317  # beside calls what is in it
signals() {
    cases 0 "process with a child"
    child_is_gone

    # start NAME: a long gate that has measured something
    start() {
        local i
        rm -rf "$LLMBENCH_REPORT_DIR" "$CHILD"
        begin "$1" "process at "
        for ((i = 0; i < 2400; i++)); do
            if [[ -s $LLMBENCH_REPORT_DIR/records.jsonl ]]; then return; fi
            sleep 0.05
        done
        wrong "it measures nothing"
    }
    # interrupted SIGNAL NAMES SUMMARY TEXT...: such a gate ends invalid, with its reports, and says so
    interrupted() {
        what="SIG$1 during $2"
        start "$2"
        kill "-$1" "$pid"
        waited 3
        says "the run was interrupted" "${@:4}"
        summary_says "$3"
        reported
        child_is_gone
    }
    for signal in INT TERM HUP XCPU; do
        beside interrupted "$signal" "long with a child,run does not assert" "the run was interrupted" \
            "INVALID" "interrupted before this gate began"
    done
    beside interrupted INT "long comparison" "the run was interrupted" \
        "long comparison / a: invalid" "long comparison / b: invalid"
    beside interrupted INT "long curve" "no capacity is shown" "long curve / 2 users: invalid" \
        "long curve / 4 users: invalid" "long curve: no capacity is shown, 2 loads"

    # Of a load at once the records of both are kept.
    both_are_kept() {
        local arm
        for arm in candidate baseline; do report_says "\"arm\":\"$arm\"" records.jsonl; done
    }
    interrupted_at_once() {
        interrupted INT "long at once" "the run was interrupted" "INVALID"
        both_are_kept
    }
    beside interrupted_at_once
    one_is_killed() {
        what="one of two servers is killed"
        start "long at once"
        while alive "$pid" && ! kill -KILL "$(< "$CHILD")" 2> /dev/null; do sleep 0.05; done
        waited 3
        says "INVALID" "the server process was ended by signal 9"
        reported
        both_are_kept
    }
    beside one_is_killed

    interrupted_twice() {
        what="SIG$1, then SIG$2 while the server takes its time"
        start "long with a stubborn child"
        kill "-$1" "$pid"
        sleep 0.5
        if alive "$pid"; then ok; else wrong "it did not wait for its server"; fi
        kill "-$2" "$pid"
        waited 3
        summary_says "the run was interrupted"
        reported
        child_is_gone
    }
    # GitHub cancels like that, 7.5 s apart, and a terminal that closes says it twice. Of Jenkins and of
    # the script around the gates both say the last at once.
    beside interrupted_twice INT TERM
    beside interrupted_twice INT HUP
    beside interrupted_twice TERM TERM
    all_beside

    what="SIGINT in the background of a script, where it is ignored"
    rm -rf "$LLMBENCH_REPORT_DIR"
    "$gates" --test-case="pass in real time" > "$log" 2>&1 &
    pid=$!
    for ((i = 0; i < 20; i++)); do
        sleep 0.05
        kill -INT "$pid" 2> /dev/null || break
    done
    waited 0

    what="a file that may not grow"  # with ulimit -f: the program goes on, and says so
    # shellcheck disable=SC2016  # for the shell that it starts
    ends 3 bash -c 'ulimit -f 8; exec "$0" --test-case=pass' "$gates"
    says "not written whole in" "File too large"

    what="SIGINT twice"
    start "long with a stubborn child"
    kill -INT "$pid"
    sleep 0.5
    if alive "$pid"; then ok; else wrong "it did not wait for its server"; fi
    began=$SECONDS
    kill -INT "$pid"
    waited 130
    if ((SECONDS - began <= 3)); then ok; else wrong "it took $((SECONDS - began)) s to end at once"; fi
    sleep 0.2
    child_is_gone

    what="SIGKILL during a run"
    start "long with a stubborn child"
    sleep 1.5
    port=$(sed -n 's|^  process at http://127.0.0.1:\([0-9]*\),.*|\1|p' "$log")
    if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then ok; else wrong "no server to begin with"; fi
    read -r uptime _ < /proc/uptime
    kill_it
    # Every line is whole, but perhaps the last; each has its gaps; the last one is new.
    records=$LLMBENCH_REPORT_DIR/records.jsonl
    lines=$(wc -l < "$records")
    whole=$(grep -cE '^\{"id":"[-0-9a-f]{36}",.*"late_ns":[0-9]+,.*\}$' "$records" || true)
    if ((lines > 10 && (whole == lines || whole == lines + 1))); then ok
    else wrong "$whole of $lines lines are whole"; fi
    gaps=$(head -n "$lines" "$records" | sed 's/.*"events":\([0-9]*\).*/\1/' |
        awk '{ n += $1 > 1 ? $1 - 1 : 0 } END { print n }')
    if (($(wc -c < "$LLMBENCH_REPORT_DIR/events.bin") >= 4 * gaps && gaps > 10)); then ok
    else wrong "events.bin has less than $gaps gaps"; fi
    last=$(head -n "$lines" "$records" | tail -n 1 | sed 's/.*"end_ns":\([0-9]*\).*/\1/')
    if ((last / 1000000000 >= ${uptime%.*} - 2)); then ok
    else wrong "the last record is of $((last / 1000000)) ms, and it was killed at $uptime s"; fi
    for ((i = 0; i < 40; i++)); do alive "$(< "$CHILD")" || break; sleep 0.05; done
    child_is_gone
    if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then wrong "the server lives on"; else ok; fi
}

# ---- servers that the environment's commands start
own_servers() {
    local port=${ports[7]} other=${ports[8]} squatter status
    local url=LLMBENCH_URL=http://127.0.0.1:$port server="LLMBENCH_SERVER='$no_doctest' serve {port} 2"
    # shellcheck disable=SC2317  # called by holds
    nobody_listens() { ! (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

    # One start for both gates, and its log is beside the reports.
    cases 0 "default target*" "$url/v1" "LLMBENCH_SERVER=echo started once; exec ${server#*=}"
    says_times 2 "^default target.*: passed$"
    holds "it is not started once" [ "$(grep -c "started once" "$LLMBENCH_REPORT_DIR/server.log")" = 1 ]
    holds "the server lives on" nobody_listens "$port"
    cases 0 "head against base" "$url" "$server" "LLMBENCH_BASELINE_URL=http://localhost:$other" "LLMBENCH_BASELINE_$(cut -d_ -f2- <<< "$server")"
    holds "the baseline has no log" [ -e "$LLMBENCH_REPORT_DIR/baseline-server.log" ]
    holds "the baseline lives on" nobody_listens "$other"

    # It ends instead of getting ready, at once, and that is no reason to skip.
    cases 3 "default target" "$url" LLMBENCH_SKIP_WITHOUT_SERVER=1 \
        "LLMBENCH_SERVER=echo ::error::Address already in use, --api-key said-0123456; exit 5"
    says "the server of LLMBENCH_SERVER exited with status 5" "| ::error::Address already in use, --api-key ***"
    cases 3 "default target" "$url" LLMBENCH_READY_WITHIN=1 "LLMBENCH_SERVER=sleep 60"
    says "was not ready within 1 s"

    # Another one was there before. A gateway with nobody behind it is no server.
    for status in 503 404 502; do
        python3 "$(dirname "$source")/../support/answers.py" "$port" "$status" > /dev/null 2>&1 &
        squatter=$!
        wait_for_port "$port"
        cases 3 "default target" "$url" LLMBENCH_READY_WITHIN=1 "LLMBENCH_SERVER=sleep 60"
        if ((status == 502)); then says "was not ready within 1 s"
        else says "something answers at its URL already (HTTP $status)"; fi
        kill "$squatter"
        wait "$squatter" 2> /dev/null || true
    done

    # Another one takes its place and answers, and is none of its process group.
    cases 3 "default target" "$url" "LLMBENCH_SERVER=setsid ${server#*=} & echo \$! > $work/other; until [ -s $LLMBENCH_REPORT_DIR/records.jsonl ]; do sleep 0.05; done; echo out of memory; exit 1"
    says "the server of LLMBENCH_SERVER exited with status 1" "| out of memory"
    kill "$(< "$work/other")"
}

# ---- other mains
other_mains() {
    ends 0 "$own_main" --test-case=pass
    for how in "1 miss" "3 server gone" "2 refused"; do
        ends "${how%% *}" "$own_main" --test-case="${how#* }"
        says "own_main.cpp:" "ERROR: CHECK("
    done
    ends 0 "$no_doctest" pass
    says "verdict: pass" "judged afterwards: pass, fail"  # two repeats at four times the limit
    ends 1 "$no_doctest" miss
    says "verdict: fail" "judged afterwards: pass, fail"
    ends 0 "$no_doctest" judged
    says "judged afterwards: pass, fail"
    ends 2 "$no_doctest" refused
    says "exception: neither requests nor duration is set"
    ends 3 "$no_doctest" gone
    says "exception: no server answers at $closed"
}

parts=("${@:4}")
if ((${#parts[@]} == 0)); then
    parts=(one_gate guard_alone refusals no_server nothing_escapes exits threads files_of_runs masked_words_of
        time_budget stored_baselines calibration rehearsal histories progress several_gates own_assertions
        questions settings signals own_servers other_mains)
fi
for part in "${parts[@]}"; do "$part"; done
echo "$passed passed, $failed failed"
((failed == 0)) || exit 1
[[ ! $stalled ]] || exit 77
