#!/usr/bin/env bash
# ci/bisect.sh, on repositories of 64 commits whose simulated server has a step.
#   tests/history/bisect.sh GATES [TIMES]      outcomes_gates; default: 20 repositories
# shellcheck disable=SC2016  # commands for other shells
set -euo pipefail
GATES_PROGRAM=$(realpath "${1:?usage: bisect.sh GATES [TIMES]}")
export GATES_PROGRAM
times=${2:-20}
script=$(cd "$(dirname "$0")" && pwd)/../../ci/bisect.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" "${!GIT_@}" "${!GITHUB_@}"
export HOME=$work LC_ALL=C LLMBENCH_REPORT_DIR=$work/report BASELINE=$work/none.json RUNS=$work/runs
gates='echo x >> "$RUNS"; RESTART=$(wc -l < "$RUNS") "$GATES_PROGRAM" --test-case=bisected'
failed=0
wrong() { failed=1; echo "WRONG: $1"; tail -n 40 "$work/log" | sed 's/^/    | /'; }
g() { git -c user.name=a -c user.email=a@a.test "$@"; }
# repository STEP PERCENT: 64 commits, of which number STEP and those after it are so much slower
repository() {
    rm -rf "$work/repository"
    git init --quiet --initial-branch=main "$work/repository"
    cd "$work/repository"
    local i microseconds
    for ((i = 1; i <= 64; i++)); do
        echo "$i" > number
        microseconds=$((i < $1 ? 2000 : 20 * (100 + $2)))
        printf '%d.%03d\n' $((microseconds / 1000)) $((microseconds % 1000)) > speed
        g add -A
        g commit --quiet -m "commit $i"
    done
}

: > "$RUNS"
RANDOM=7
for ((time = 1; time <= times; time++)); do
    step=$((2 + RANDOM % 62)) percent=$((8 + RANDOM % 13))
    repository "$step" "$percent"
    status=0
    bash "$script" HEAD~63 HEAD true "$gates" > "$work/log" 2>&1 || status=$?
    found=$(sed -n 's/^    commit \([0-9]*\)$/\1/p' "$work/log" | tail -n 1)
    if [[ $status == 0 && $found == "$step" ]]; then
        echo "ok: a step of $percent % at commit $step"
    else
        wrong "a step of $percent % at commit $step: it ended with $status and found ${found:-none}"
    fi
    [[ $(git symbolic-ref --short HEAD) == main ]] || wrong "the checkout is not what it was"
done
echo "$(wc -l < "$RUNS") runs"

# What ends with which code.
code() { (status=0; bash -c "$gates" > "$work/log" 2>&1 || status=$?; [[ $status == "$1" ]]) || wrong "not $1: $2"; }
export LLMBENCH_BISECT_GOOD=$work/good.json
code 2 "a file for which nothing is asked"
echo 2.000 > speed
LLMBENCH_WRITE_BASELINE=1 code 77 "the good commit"
LLMBENCH_BISECT=1 code 0 "as good"
echo 2.400 > speed
LLMBENCH_BISECT=1 code 1 "worse"
LLMBENCH_BISECT='mean(tpot)' code 1 "worse, by one of two objectives"
LLMBENCH_BISECT='p90(ttft)' code 0 "the other one"
LLMBENCH_BISECT='p90(e2e)' code 128 "no objective of the gate"
echo 2.000 > speed
LLMBENCH_BISECT=1 LLMBENCH_TIME_BUDGET=0.01 code 125 "no time for a repeat"
echo nothing > speed
LLMBENCH_BISECT=1 code 125 "a server without times"
LLMBENCH_BISECT=1 LLMBENCH_HISTORY=append code 128 "beside another wish"
unset LLMBENCH_BISECT_GOOD
LLMBENCH_BISECT=1 code 128 "without a good commit"
exit "$failed"
