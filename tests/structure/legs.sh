#!/usr/bin/env bash
# What ci/legs.sh says of a run that passes, fails, or is killed.
#   tests/structure/legs.sh
set -euo pipefail
legs=$(cd "$(dirname "$0")/../.." && pwd)/ci/legs.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# run NAME: a run whose second leg is standard input, in the background as $run
run() {
    {
        printf 'set -euo pipefail\nsay() { :; }\ndie() { exit 1; }\nsource %q\nlegs_to_come one two\nleg one\ntrue\nleg two\n' "$legs"
        cat
        echo all_legs_passed
    } > "$1.sh"
    # Whoever started this may ignore a hang-up, as nohup does.
    setsid env --default-signal=HUP bash "$1.sh" > "$1.log" 2>&1 &
    run=$!
}
# ended NAME STATUS LINE...: it did, and these are the last lines
ended() {
    local status=0
    wait "$run" 2> /dev/null || status=$?
    if [[ $status == "$2" ]] && diff <(tail -n $(($# - 2)) "$1.log" | sed 's/  *[0-9]* s$//') \
        <(printf '%s\n' "${@:3}"); then return; fi
    failed=1
    echo "WRONG: $1 ends with $status instead of $2, or says otherwise:"
    sed 's/^/    | /' "$1.log"
}
begun() { until [[ -s $work/pid ]]; do sleep 0.02; done; }

run passes <<< true
ended passes 0 "passed  one" "passed  two"
run fails <<< false
ended fails 1 "passed  one" "FAILED  two"
run child <<< "bash -c 'kill -KILL \$\$'"
ended child 137 "passed  one" "KILLED  two"
run exits <<< 'exit 0'
ended exits 1 "passed  one" "KILLED  two"
for signal in TERM:143 HUP:129; do
    rm -f pid
    # Not while the output of the shell itself goes to that file.
    run "$signal" <<< 'echo "$$" > draft; mv draft pid; sleep 60'
    begun
    kill -s "${signal%:*}" -- "-$run"
    ended "$signal" "${signal#*:}" "passed  one" "KILLED  two"
done
printf 'stalled by the machine: a test\n' > stalled
run few_stalled <<< 'count_stalled stalled; count_stalled /dev/null; count_stalled stalled'
ended few_stalled 0 "passed  one" "passed  two"
run many_stalled <<< 'for i in 1 2 3; do count_stalled stalled; done'
ended many_stalled 1 "passed  one" "FAILED  two"
# What runs beside it ends with it, and a process of its own group too.
rm -f pid
run beside << 'END_OF_RUN'
builds() { sleep 61 & echo $! > pid; wait; }
beside_legs builds log
until [[ -s pid ]]; do sleep 0.02; done
false
END_OF_RUN
ended beside 1 "passed  one" "FAILED  two"
for ((try = 0; try < 200; try++)); do
    [[ -e /proc/$(< pid) && $(sed 's/.*) //; s/ .*//' "/proc/$(< pid)/stat") != Z ]] || break
    sleep 0.05
done
if ((try == 200)); then failed=1; echo "WRONG: what ran beside it lives on"; fi
exit "$failed"
