#!/usr/bin/env bash
# llmbench history: annotations, imports, the page and what it refuses.
#   tests/history/run.sh GATES LLMBENCH      outcomes_gates
# shellcheck disable=SC2317  # functions are called through expect
set -euo pipefail
gates=$(realpath "${1:?usage: run.sh GATES LLMBENCH}")
history=("$(realpath "$2")" history)
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
    "${history[@]}" "${@:2}" > "$log" 2>&1 || status=$?
    [[ $status == "$1" ]]
}
says() { grep -qF -- "$1" "${2:-$log}"; }

expect "no folder is refused" tool 2 --page page.html
expect "with what makes one" says "LLMBENCH_HISTORY=append on main makes it"
LLMBENCH_HISTORY=append "$gates" --test-case=pass > gates.log
day=$(date -u +%F)
id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' h/*/*/*.jsonl)

expect "a page" tool 0 --page page.html --result llmbench-report/result.json
expect "it has a plot of each statistic" [ "$(grep -c '<figure><figcaption>' page.html)" = 5 ]
expect "and the run of today" says '["today",' page.html
expect "and its data" [ "$(grep -c 'figcaption><script type="application/json">' page.html)" = 5 ]

expect "an annotation needs its reason" tool 2 --accept pass --at "$day"
expect "in a sentence" says 'an annotation needs its reason: --why'
expect "and a run" tool 2 --accept pass --at 2020-02-02 --why w
expect "in a sentence" says 'has no run of that date'
expect "and a gate" tool 2 --accept nothing --at "$day" --why w
expect "and a run" tool 2 --leave-out nothing --why w
expect "a step is accepted" tool 0 --accept pass --at "$day" --why "vLLM <0.33>"
expect "a step is said" tool 0 --step pass --at "$day" --why "new cards" --by bert
expect "a step is denied" tool 0 --no-step pass --at "$day" --why "noise"
expect "a run is left out" tool 0 --leave-out "$id" --why "shared"
expect "four files are added" [ "$(find h -name '*.jsonl' | wc -l)" = 5 ]
expect "the page again" tool 0 --page page.html
expect "it has what was said, as words" says 'accept: vLLM &lt;0.33&gt; (anna)' page.html
expect "and by whom" says 'step: new cards (bert)' page.html
expect "and crosses the run" says '["out",' page.html

cp -r h kept
expect "a run that was added is not imported, too" tool 2 --import llmbench-report/result.json
expect "in a sentence" says "llmbench-report/result.json is in the history already: \"pass\" of $day"
rm -r h/2*
expect "a kept run is imported" tool 0 --import llmbench-report/result.json
expect "once" tool 2 --import llmbench-report/result.json
expect "into the series of its load" [ "$(find h/cohorts -type f | wc -l)" = 1 ]
rm -r h/2*
# changed STATUS SENTENCE PYTHON: an import of what an append would refuse.
changed() {
    python3 - "$3" << 'END'
import json, sys
r = json.load(open("llmbench-report/result.json"))
g = r["gates"][0]
exec(sys.argv[1])
json.dump(r, open("changed.json", "w"))
END
    tool "$1" --import changed.json && says "$2"
}
expect "what was cut off is not imported" changed 2 'not added: "pass": no time for it' 'g["judging"]["stopped"] = "no time for it"'
expect "nor what was interrupted" changed 2 'it was interrupted' 'g["candidate"]["repeats"][0]["interrupted"] = True'
expect "nor what ended early" changed 2 'it has 2 of 3 repeats' 'g["candidate"]["repeats"].pop()'
expect "nor what is invalid" changed 2 'it is invalid: broken' 'g["slos"][0].update(verdict="invalid", reason="broken")'
expect "nor what was refused" changed 2 'it was refused or skipped' 'g["refusal"] = "no"'
expect "nor what failed too often" changed 2 '5 % of its requests failed' '[s for s in g["slos"] if s["metric"] == "error_rate"][0].update(estimate=0.05)'
expect "nor what is of another day than has come" changed 2 'one of the two clocks is wrong' 'r["environment"]["started_at"] = "2999-01-01T00:00:00Z"'
expect "and nothing was added" [ "$(find h -name '*.jsonl' | wc -l)" = 0 ]
sed -i 's/"cpu": ""/"cpu": "Z80"/' h/cohorts/*.json
expect "nor what was measured on another CPU" changed 2 'and its series on Z80' 'g["target"]["url"] = "http://127.0.0.1:1"; r["environment"]["cpu"] = "6502"'
expect "or on another host" changed 2 'it was measured on http://far:1, and its series on Z80' 'g["target"]["url"] = "http://far:1"; r["environment"]["cpu"] = "Z80"'
expect "what was not is imported" changed 0 '.jsonl' 'g["target"]["url"] = "http://127.0.0.1:1"; r["environment"]["cpu"] = "Z80"'
rm -r h/cohorts && cp -r kept/cohorts h/
expect "of two gates one is, and the other one named" changed 0 'not added: "other": it was refused' 'g["target"]["url"] = "http://localhost"; r["environment"]["started_at"] = "2026-01-02T03:04:05Z"; r["gates"].append({"name": "other", "outcome": "refused", "refusal": "no"})'
rm -rf h
expect "without a series it needs a machine" tool 2 --import llmbench-report/result.json
expect "in a sentence" says "set LLMBENCH_MACHINE"
expect "with one it makes a series" env LLMBENCH_MACHINE=bench-7 "${history[@]}" --import llmbench-report/result.json
expect "of that machine" says '"machine": "bench-7"' h/cohorts/*.json
expect "which can be drawn" tool 0 --page page.html

rm -rf h && cp -r kept h
cat h/*/*/*.jsonl > h/all.jsonl
expect "files and what they were put together to are one history" tool 0 --page page.html
expect "of one run" says '1 run' page.html
echo '<<<<<<< HEAD' >> h/all.jsonl
expect "a line that is none is refused" tool 2 --page page.html
expect "with its file and number" says "h/all.jsonl:6 is no line of a history: <<<<<<< HEAD"
expect "an unknown option is refused" tool 2 --pages page.html
expect "two things at once are refused" tool 2 --page page.html --accept pass --why w

# A step that nobody accepted, from the 15th run on.
rm -rf h && mkdir h
for day in {10..30}; do
    value=$([[ $day -lt 24 ]] && echo 0.010 || echo 0.012)
    echo '{"schema":"llmbench/history/1","id":"n'"$day"'","at":"2026-06-'"$day"'T02:00:00Z","gate":"chat",' \
        '"cohort":"c","commit":"c0ffee'"$day"'","watched":{},"outcome":"passed","values":' \
        '{"mean(tpot)":['"$value"'1,'"$value"'2,'"$value"$((day % 7))']}}'
done > h/runs.jsonl
expect "a step to bisect" tool 0 --bisect chat
expect "is told" says "mean(tpot) +"
expect "with its run" says "% from 2026-06-24 on"
expect "and as git takes it" says "git bisect start c0ffee24 c0ffee23"
expect "of a gate that there is" tool 2 --bisect chaat
expect "in a sentence" says 'the history has no run of "chaat"'
expect "it is accepted" tool 0 --accept chat --at 2026-06-24 --why "longer prompts"
expect "and no more to be bisected" tool 2 --bisect chat
expect "in a sentence" says 'no step that made "chat" worse is open'
# An objective steps later than a statistic of none.
rm -rf h && mkdir h
for day in {10..30}; do
    first=$([[ $day -lt 26 ]] && echo 0.30 || echo 0.39)
    usual=$([[ $day -lt 24 ]] && echo 0.010 || echo 0.012)
    echo '{"schema":"llmbench/history/1","id":"n'"$day"'","at":"2026-06-'"$day"'T02:00:00Z","gate":"chat",' \
        '"cohort":"c","commit":"c0ffee'"$day"'","watched":{},"outcome":"passed","values":' \
        '{"p99(e2e)":['"$first"'1,'"$first"'2,'"$first"$((day % 7))'],' \
        '"mean(tpot)":['"$usual"'1,'"$usual"'2,'"$usual"$((day % 7))']},"objectives":["p99(e2e)"]}'
done > h/runs.jsonl
expect "an objective's step comes first" tool 0 --bisect chat
expect "with its size" grep -q '^p99(e2e) +.*% from 2026-06-26 on$' "$log"
expect "and its commits" [ "$(grep -m1 'git bisect' "$log")" = "git bisect start c0ffee26 c0ffee25" ]
expect "each other step is told with its size and commits" grep -q '^mean(tpot) +.*% from 2026-06-24 on$' "$log"
expect "as git takes them" says "git bisect start c0ffee24 c0ffee23"
rm -rf h && mkdir h
for day in {10..30}; do
    value=$([[ $day -lt 24 ]] && echo 0.010 || echo 0.012)
    echo '{"schema":"llmbench/history/1","id":"n'"$day"'","at":"2026-06-'"$day"'T02:00:00Z","gate":"chat",' \
        '"cohort":"c","commit":"c0ffee'"$day"'","watched":{},"outcome":"passed","values":' \
        '{"mean(tpot)":['"$value"'1,'"$value"'2,'"$value"$((day % 7))']}}'
done > h/runs.jsonl
sed -i 's/c0ffee24/c0ffee23/' h/runs.jsonl
expect "a step of one commit is none to bisect" tool 2 --bisect chat
expect "in a sentence" says "the commit is the same"
# Which side is better, and the offset of what can be zero.
runs_of() {  # STATISTIC BEFORE AFTER [MORE]
    rm -rf h && mkdir h
    for day in {10..30}; do
        value=$([[ $day -lt 24 ]] && echo "$2" || echo "$3")
        echo '{"schema":"llmbench/history/1","id":"n'"$day"'","at":"2026-06-'"$day"'T02:00:00Z","gate":"chat",' \
            '"cohort":"c","commit":"c0ffee'"$day"'","watched":{},"outcome":"'"${outcome:-passed}"'","values":' \
            '{"'"$1"'":['"$value"'1e-6,'"$value"'2e-6,'"$value"$((day % 7))'e-6]}'"${4-}"'}'
    done > h/runs.jsonl
}
for of in 'output_throughput of turns(2)' 'drift(p10(decode_speed))' 'cached_share'; do
    runs_of "$of" 12000 10000
    expect "less of $of is worse" tool 0 --bisect chat
    runs_of "$of" 10000 12000
    expect "more is not" tool 2 --bisect chat
done
runs_of 'mean(tokens_left)' 12000 10000
expect "of a metric that nobody knows less is better" tool 2 --bisect chat
runs_of 'mean(tokens_left)' 12000 10000 ',"more_is_better":["mean(tokens_left)"]'
expect "unless the runs say that more is" tool 0 --bisect chat
expect "with its change" says 'mean(tokens_left) -16.7 %'
runs_of 'mean(queue_time)' 2. 12.
expect "what can be zero is held against its offset" tool 0 --bisect chat
expect "as a gate holds it" says 'mean(queue_time) +1.0 %'
outcome=invalid runs_of 'mean(ttft)' 1 1
expect "runs that are not valid are no run" tool 2 --bisect chat
expect "but are told" says 'has no valid run yet'
expect "also to who annotates" tool 2 --accept chat --at 2026-06-24 --why w
expect "in a sentence" says 'the history has 21 runs of "chat", and none is valid'
# Machines by turns; the last of them is 20 % slower from its fifth run on.
runs_on() {  # RUNS MACHINE...
    python3 - "$@" << 'END'
import json, sys
count, names = int(sys.argv[1]), sys.argv[2:]
for i in range(count):
    at = "2026-%02d-%02dT02:00:00Z" % (1 + i // 28, 1 + i % 28)
    slow = i % len(names) == len(names) - 1 and i >= 4 * len(names)
    level = 0.01 * (1.2 if slow else 1) * (1 + 0.004 * (i * 7 % 5 - 2))
    print(json.dumps({"schema": "llmbench/history/1", "id": "n%d" % i, "at": at, "gate": "chat",
                      "cohort": "c", "commit": "c0ffee%02d" % i, "watched": {}, "outcome": "passed",
                      "machine": names[i % len(names)], "objectives": ["mean(tpot)"],
                      "values": {"mean(tpot)": [level * 0.999, level, level * 1.001]}}))
END
}
rm -rf h && mkdir h
runs_on 40 a b c-slow > h/runs.jsonl
expect "the machines of a history" tool 0 --machines h
expect "are counted, with what they differ by" grep -qE '^chat, mean\(tpot\): 3 machines, which differ by [0-9.]+ %; runs of one by [0-9.]+ %$' "$log"
expect "the slowest one comes first" [ "$(sed -n '2s/^  \([^ ]*\) .*/\1/p' "$log")" = c-slow ]
expect "each with its runs and the day of the last" grep -qE '^  a       14 runs, last 2026-02-12  ' "$log"
expect "and its effect with an interval" grep -qE '^  b .* -[0-9.]+ % \[-[0-9.]+ %, -[0-9.]+ %\]$' "$log"
expect "one that turned slow, with the day" grep -qE '^  c-slow .*, a change of \+[12][0-9.]+ % on 2026-01-15 that the others do not show$' "$log"
expect "a slow machine is no step to bisect" tool 2 --bisect chat
runs_on 12 alone > h/runs.jsonl
expect "a machine alone" tool 0 --machines h
expect "is compared with none" grep -qE '^  alone  12 runs, last 2026-01-12  ran at no other machine.s time: not compared$' "$log"
runs_on 5 a b > h/runs.jsonl
expect "one of two runs" tool 0 --machines h
expect "has no interval" says "under 3 runs: not compared"
runs_on 12 $'\e[31mred\n  a' '<b>"(date)' > h/runs.jsonl
expect "names are text" tool 0 --machines h
expect "in a line each" [ "$(wc -l < "$log")" = 3 ]
expect "without what a terminal obeys" [ "$(grep -c $'\e' "$log")" = 0 ]
expect "as they are, else" says '<b>"(date)'
expect "a page has them, too" tool 0 --page page.html
expect "as text" [ "$(grep -c '<b>' page.html)" = 0 ]
sed -E 's/"machine": "([^"\\]|\\.)*", //' h/runs.jsonl > h/none.jsonl && rm h/runs.jsonl
expect "runs without machines" tool 0 --machines h
expect "are said to tell none" says "chat, mean(tpot): no run tells its machine"
exit "$failed"
