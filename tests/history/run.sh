#!/usr/bin/env bash
# llmbench_history: marks, imports, the page and what it refuses.
#   tests/history/run.sh GATES LLMBENCH_HISTORY      outcomes_gates
# shellcheck disable=SC2317  # functions are called through expect
set -euo pipefail
gates=$(realpath "${1:?usage: run.sh GATES LLMBENCH_HISTORY}")
history=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}"
export LC_ALL=C USER=anna LLMBENCH_HISTORY_DIR=$work/h
cd "$work"
failed=0
log=$work/log
expect() {
    if "${@:2}" > "$log.is" 2>&1; then echo "ok: $1"; return; fi
    failed=1
    echo "WRONG: $1"
    sed 's/^/    | /' "$log.is" "$log"
}
# tool STATUS ARGUMENTS...: it ends so; what it says is in $log
tool() {
    local status=0
    "$history" "${@:2}" > "$log" 2>&1 || status=$?
    [[ $status == "$1" ]]
}
says() { grep -qF -- "$1" "${2:-$log}"; }

expect "no folder is refused" tool 2 --page page.html
expect "with what makes one" says "LLMBENCH_HISTORY=append on main makes it"
LLMBENCH_HISTORY=append "$gates" --test-case=pass > gates.log
day=$(date -u +%F)
id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' h/*/*/*.jsonl)

expect "a page" tool 0 --page page.html --result llmbench-report/result.json
expect "it has a plot of each statistic" [ "$(grep -c '<svg class="plot"' page.html)" = 5 ]
expect "and the run of today" says 'class="today"' page.html
expect "and no script" [ "$(grep -c '<script' page.html)" = 0 ]

expect "a mark needs its reason" tool 2 --accept pass --at "$day"
expect "in a sentence" says 'a mark needs its reason: --why'
expect "and a night" tool 2 --accept pass --at 2020-02-02 --why w
expect "in a sentence" says 'has no night of that date'
expect "and a gate" tool 2 --accept nothing --at "$day" --why w
expect "and a run" tool 2 --leave-out nothing --why w
expect "a step is accepted" tool 0 --accept pass --at "$day" --why "vLLM <0.33>"
expect "a step is said" tool 0 --step pass --at "$day" --why "new cards" --by bert
expect "a step is denied" tool 0 --no-step pass --at "$day" --why "noise"
expect "a night is left out" tool 0 --leave-out "$id" --why "shared"
expect "four files are added" [ "$(find h -name '*.jsonl' | wc -l)" = 5 ]
expect "the page again" tool 0 --page page.html
expect "it has what was said, as words" says 'accept: vLLM &lt;0.33&gt; (anna)' page.html
expect "and by whom" says 'step: new cards (bert)' page.html
expect "and crosses the night" says 'class="out"' page.html

cp -r h kept
expect "a kept run is imported" tool 0 --import llmbench-report/result.json
expect "into the cohort of its load" [ "$(find h/cohorts -type f | wc -l)" = 1 ]
rm -rf h
expect "without a cohort it needs a machine" tool 2 --import llmbench-report/result.json
expect "in a sentence" says "set LLMBENCH_MACHINE"
expect "with one it makes a cohort" env LLMBENCH_MACHINE=bench-7 "$history" --import llmbench-report/result.json
expect "of that machine" says '"machine": "bench-7"' h/cohorts/*.json
expect "which can be drawn" tool 0 --page page.html

rm -rf h && cp -r kept h
cat h/*/*/*.jsonl > h/all.jsonl
expect "files and what they were put together to are one history" tool 0 --page page.html
expect "of one night" says '1 night' page.html
echo '<<<<<<< HEAD' >> h/all.jsonl
expect "a line that is none is refused" tool 2 --page page.html
expect "with its file and number" says "h/all.jsonl:6 is no line of a history: <<<<<<< HEAD"
expect "an unknown option is refused" tool 2 --pages page.html
expect "two things at once are refused" tool 2 --page page.html --accept pass --why w
exit "$failed"
