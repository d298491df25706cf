#!/usr/bin/env bash
# Several programs send one load: four shards, and four ranks of each MPI that is there.
#   tests/several/run.sh shards GATES WORK
#   tests/several/run.sh mpi WORK            exits with 77 where no MPI is installed
set -euo pipefail
cd "$(dirname "$0")/../.."
part=${1:?usage: run.sh shards GATES WORK | mpi WORK}
unset "${!LLMBENCH_@}"
export LC_ALL=C LLMBENCH_PROGRESS=off NO_COLOR=1  # mpirun gives its ranks a terminal
export LLMBENCH_VERBOSE=1  # also what the server counted
case $part in
    shards) gates=$(realpath "$2") work=$3 && rm -rf "$work" ;;
    mpi) work=${2:?usage: run.sh mpi WORK} ;;
    *) echo "usage: run.sh shards GATES WORK | mpi WORK"; exit 2 ;;
esac
mkdir -p "$work"
# shellcheck source=tests/support/checks.sh
source tests/support/checks.sh
: > "$log"
server=
leave() {
    [[ -z $server ]] || kill "$server" 2> /dev/null || true
    # Whoever was stopped on purpose.
    [[ ! -s $work/stopped ]] || kill -KILL "$(< "$work/stopped")" 2> /dev/null || true
}
trap leave EXIT

# serve GATES: the simulated server, for all programs of this test
serve() {
    rm -f "$work/server.log"
    env PORT=0 "$1" --test-case=serves > "$work/server.log" 2>&1 &
    server=$!
    local tries
    for ((tries = 0; tries < 100; ++tries)); do
        LLMBENCH_URL=$(sed -n 's/^listening on //p' "$work/server.log" 2> /dev/null || true)
        [[ -z $LLMBENCH_URL ]] || break
        sleep 0.1
    done
    export LLMBENCH_URL
    [[ $LLMBENCH_URL ]] || { cat "$work/server.log"; exit 1; }
}

# both_sent REPORT RECORDS...: each program sent both requests of its pairs; the first of ranks has all
both_sent() {
    python3 - "$@" > "$work/python.log" 2>&1 << 'END'
import json, sys
report, files = sys.argv[1], sys.argv[2:]
g = json.load(open(report + "/result.json"))["gates"][0]
assert [s["decided_by"] for s in g["slos"] if s["metric"] == "tpot"] == ["slices_at_once"]
def sent(file):
    arms = {"candidate": {}, "baseline": {}}
    for line in open(file):
        r = json.loads(line)
        arms[r["arm"]][int(r["id"].rsplit("-", 1)[1])] = r["scheduled_ns"]
    assert arms["candidate"].keys() == arms["baseline"].keys(), "a request has no twin"
    assert arms["candidate"] != arms["baseline"], "twins of one server were sent together"
    return set(arms["candidate"])
parts = [sent(f) for f in files]
whole = set().union(*parts)
assert sorted(whole) == list(range(len(whole)))
for i, part in enumerate(parts):
    assert {place % len(parts) for place in part} == {i} or (i == 0 and part == whole)
for arm in ("candidate", "baseline"):
    [d] = g[arm]["repeats"]
    assert [r["index"] for r in d["ranks"]] == list(range(len(parts)))
    assert sum(r["requests"] for r in d["ranks"]) == len(whole) - 10
END
}

# ---- shards

# shards TEST [COUNT]: all of them, into $work/shard-N; their exit codes are in $codes
shards() {
    local count=${2:-4} i pids=()
    what="shards $1"
    rm -rf "$work"/shard-*
    local at=$(($(date +%s) + 4))
    for ((i = 0; i < count; ++i)); do
        env LLMBENCH_SHARD="$i/$count" LLMBENCH_START_AT="$at" \
            LLMBENCH_REPORT_DIR="$work/shard-$i" \
            "$gates" --no-colors --test-case="$1" > "$work/shard-$i.log" 2>&1 &
        pids+=($!)
    done
    codes=
    for i in "${!pids[@]}"; do
        local code=0
        wait "${pids[i]}" || code=$?
        codes+="${codes:+ }$code"
    done
}
# read_by TEST CODE GATE DIRECTORY...: a test that reads what is in directories
read_by() {
    what="$1, $3"
    ended "$2" env GATE="$3" SHARDS="${*:4}" LLMBENCH_REPORT_DIR="$work/all" \
        "$gates" --no-colors --test-case="$1"
}
# judged CODE GATE DIRECTORY...: what judge_shards makes of them
judged() { read_by together "$@"; }
# alone CODE TEST [VARIABLE=VALUE...]
alone() {
    what="$2 ${*:3}"
    ended "$1" env LLMBENCH_REPORT_DIR="$work/alone" "${@:3}" "$gates" --no-colors --test-case="$2"
}
same_trace() {
    python3 - "$work" << 'END'
import collections, json, sys
work = sys.argv[1]
def requests(directory):
    for line in open(f"{directory}/records.jsonl"):
        r = json.loads(line)
        yield (r["repeat"], int(r["id"].rsplit("-", 1)[1])), r
def planned(directory):
    return {k: r for k, r in requests(directory)}
seen = collections.Counter()
for i in range(4):
    for k, r in requests(f"{work}/shard-{i}"):
        seen[k] += 1
assert set(seen.values()) == {1}, "a request was sent twice"
repeats = {k[0] for k in seen}
for n in repeats:
    places = sorted(k[1] for k in seen if k[0] == n)
    assert places == list(range(len(places))) and len(places) == 130, (n, len(places))
g = json.load(open(f"{work}/all/result.json"))["gates"][0]
assert len(g["candidate"]["repeats"]) == len(repeats) == 3
for d in g["candidate"]["repeats"]:
    assert [r["index"] for r in d["ranks"]] == [0, 1, 2, 3]
    assert sum(r["requests"] for r in d["ranks"]) == 120
    assert all(abs(r["off_s"]) < 0.05 for r in d["ranks"])
    assert abs(d["asked_rate"] - 80) < 1e-6, d["asked_rate"]
END
}
# What ci/shards/ offers, with two programs of this machine.
test_templates() {
    rm -rf "$work"/shard-*
    local ids=() i
    START_AT=$(($(date +%s) + 4))
    export START_AT
    for i in 0 1; do
        env SLURM_ARRAY_TASK_ID="$i" SLURM_ARRAY_TASK_COUNT=2 SHARDS="$work" GATES="$gates" \
            GATE=passes bash ci/shards/slurm.sh > "$work/slurm-$i.log" 2>&1 &
        ids+=($!)
    done
    for i in "${ids[@]}"; do
        if wait "$i"; then ok; else wrong "a task of slurm.sh fails"; fi
    done
    judged 0 passes "$work"/shard-{0,1}
    if command -v parallel > /dev/null; then
        rm -rf "$work"/shard-*
        if env AHEAD=4 SHARDS="$(realpath "$work")" GATES="$gates" GATE=passes \
            bash ci/shards/parallel.sh 2 > "$log" 2>&1; then ok; else wrong "parallel.sh fails"; fi
        judged 0 passes "$work"/shard-{0,1}
    fi
    if python3 - > "$log" 2>&1 << 'END'
import yaml
job = yaml.safe_load(open("ci/shards/kubernetes-job.yaml"))
spec = job["spec"]
assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"] == 8
[container] = spec["template"]["spec"]["containers"]
assert "$JOB_COMPLETION_INDEX/8" in container["args"][0]
assert {"name": "LLMBENCH_START_AT", "value": "${START_AT}"} in container["env"]
END
    then ok; else wrong "kubernetes-job.yaml is another job than it says"; fi
}

test_shards() {
    serve "$gates"
    shards passes
    if [[ $codes == "77 77 77 77" ]]; then ok; else wrong "shards end with $codes"; fi
    cp "$work/shard-2.log" "$log"
    says "passes: skipped" "shard 2 of 4 is measured: judge_shards judges all of them"
    judged 0 passes "$work"/shard-{3,0,2,1}
    says "PASS          p90(ttft)" "PASS          p50(itl)" "3 repeats x 120 requests" \
        "4 programs on 1 machine sent the load" "cross-check: the server's counters match our requests"
    local text
    for text in "Programs that sent the load" "poisson(80 req/s)" "drain 2 s"; do
        if grep -qF "$text" "$work/all/report.html"; then ok; else wrong "no $text on the page"; fi
    done
    if same_trace > "$log" 2>&1; then ok; else wrong "together they are not the trace"; fi

    judged 2 passes "$work"/shard-{0,1,3}
    says "of 4 shards these are missing: 2"
    cp -r "$work/shard-3" "$work/older-3"
    shards passes
    judged 2 passes "$work"/shard-{0,1,2} "$work/older-3"
    says "$work/older-3 belongs to another load: run"
    judged 2 "" "$work/shard-0" "$work/nothing"
    says "$work/nothing"

    shards "both at once" 2
    read_by "both together" 0 "both at once" "$work"/shard-{0,1}
    says "PASS          mean(tpot) <= 5 * baseline" "2 programs on 1 machine sent the load" \
        "cross-check: the server's counters match our requests"
    if both_sent "$work/all" "$work"/shard-{0,1}/records.jsonl; then ok
    else cat "$work/python.log"; wrong "the records are not those of both variants"; fi

    local gate
    for gate in users batch conversations; do
        shards "$gate"
        judged 0 "$gate" "$work"/shard-{0,1,2,3}
        says "4 programs on 1 machine sent the load"
    done
    read_by "turns together" 0 conversations "$work"/shard-{0,1,2,3}
    says "PASS          p50(later_turn_ttft)"
    # One of them is no load, whoever reads it.
    read_by "one alone" 1 conversations "$work/shard-1"
    says "shard 1 of 4 is measured: judge_shards judges all of them"
    # Sent at another time by the server's own clock.
    cp -r "$work/shard-2" "$work/later"
    if python3 - "$work/later/result.json" > "$log" 2>&1 << 'END'
import json, re, sys
path = sys.argv[1]
text = open(path).read()
for d in json.loads(text)["gates"][0]["candidate"]["repeats"]:
    for r in d["ranks"]:
        low, high = r["server_clock_low_s"], r["server_clock_high_s"]
        assert -3 < low <= high < 3, (low, high)
later = lambda m: m[1] + str(float(m[2]) + 12)
open(path, "w").write(re.sub(r'("server_clock_\w+": )(-?[0-9.e-]+)', later, text))
END
    then ok; else wrong "shards do not tell what they saw of the server's clock"; fi
    judged 2 conversations "$work"/shard-{0,1,3} "$work/later"
    says "the clocks of $work/later and" "by the Date of the server's answers"

    test_templates

    alone 2 passes LLMBENCH_SHARD=4/4 LLMBENCH_START_AT=$(($(date +%s) + 5))
    says 'LLMBENCH_SHARD is "4/4": it must be such as 2/8'
    alone 2 passes LLMBENCH_SHARD=1/4
    says "LLMBENCH_SHARD and LLMBENCH_START_AT belong together"
    alone 2 passes LLMBENCH_SHARD=1/4 LLMBENCH_START_AT=tomorrow
    says 'LLMBENCH_START_AT is "tomorrow"'
    alone 2 passes LLMBENCH_SHARD=1/4 LLMBENCH_START_AT=$(($(date +%s) - 60))
    says "LLMBENCH_START_AT: the first repeat was to begin 6"
    local soon
    soon=LLMBENCH_START_AT=$(($(date +%s) + 60))
    alone 2 "two users" LLMBENCH_SHARD=1/4 "$soon"
    says "arrivals has 2 users: each program needs one"
    alone 2 "users without end" LLMBENCH_SHARD=1/4 "$soon"
    says "a closed loop without a duration"
    alone 2 simulated LLMBENCH_SHARD=1/4 "$soon"
    says "target is simulated(), and the load is shared"
    alone 2 "a search" LLMBENCH_SHARD=1/4 "$soon"
    says "a search needs a verdict between its probes"
}

# ---- MPI

# ranks CODE TEST [VARIABLE=VALUE...]: four of them end so; code "red" is any but 0
ranks() {
    local code=0 wanted=$1
    what="$mpi: $2"
    rm -rf "$work/report"
    env LLMBENCH_RANK_WAIT=20 LLMBENCH_REPORT_DIR="$work/report" "${@:3}" timeout 120 \
        "${start[@]}" -n 4 "$program" --no-colors --test-case="$2" > "$log" 2>&1 || code=$?
    if [[ $wanted == red && $code -ne 0 && $code -ne 124 || $code == "$wanted" ]]
    then ok; else wrong "exit code $code instead of $wanted"; fi
}
lines_of() { if [[ -e $work/report/$1 ]]; then wc -l < "$work/report/$1"; else echo 0; fi; }
# third_rank SIGNAL: sent to one of the ranks once it has sent some requests
third_rank() {
    local tries
    for ((tries = 0; tries < 300; ++tries)); do
        if (($(lines_of rank-2/records.jsonl) > 5)); then break; fi
        sleep 0.1
    done
    { pgrep -f "^$program .*--test-case=passes" || true; } | sort -n | sed -n 3p > "$work/stopped"
    kill "-$1" "$(< "$work/stopped")" || true
}

test_mpi() {
    ranks 0 passes
    says "passes: passed" "4 programs on 1 machine sent the load" "cross-check: the server's counters match our requests"
    if [[ $(grep -c "passes: passed" "$log") == 1 ]]; then ok; else wrong "several ranks speak"; fi
    if python3 - "$work/report" > "$work/python.log" 2>&1 << 'END'
import json, sys
report = sys.argv[1]
g = json.load(open(report + "/result.json"))["gates"][0]
lines = [json.loads(x) for x in open(report + "/records.jsonl")]
for d in g["candidate"]["repeats"]:
    places = sorted(int(r["id"].rsplit("-", 1)[1]) for r in lines if r["repeat"] == d["index"])
    assert places == list(range(130)), len(places)
    assert sum(r["requests"] for r in d["ranks"]) == 120
END
    then ok; else cat "$work/python.log"; wrong "the records are not the trace"; fi
    ranks 1 fails
    says "FAIL          mean(tpot) <= 1 ms" "2 repeats"
    ranks 0 batch
    ranks 0 users
    ranks 0 "both at once"
    says "4 programs on 1 machine sent the load"
    if both_sent "$work/report" "$work/report"/{,rank-1/,rank-2/,rank-3/}records.jsonl
    then ok; else cat "$work/python.log"; wrong "the records are not those of both variants"; fi
    ranks 0 "a search"
    says "PASS          capacity >= 20 req/s"
    ranks 3 "rank 2 is late"
    says "client: rank 2 of 4 on" "began 20 ms late" "up to 5 ms is allowed"
    ranks 3 "clocks are measured"
    says "client: rank 2 of 4 on"
    ranks 3 "rank 1 has another plan"
    says "rank 1 of 4: its gate is another one than rank 0's"
    ranks 3 "rank 3 has no server"
    says "rank 3 of 4: "
    ranks 3 "rank 3 has no address"
    says "rank 3 of 4: client.from is"
    ranks 2 passes LLMBENCH_RANK_WAIT=soon
    says 'LLMBENCH_RANK_WAIT is "soon": it must be a number of seconds from 1 to 86400'
    rm -f "$work/step.md"
    ranks 0 passes GITHUB_STEP_SUMMARY="$work/step.md"
    if [[ $(grep -c '^### ' "$work/step.md") == 1 ]]; then ok; else wrong "each rank writes the step summary"; fi
    ranks red "rank 1 is elsewhere" LLMBENCH_RANK_WAIT=2
    says "of 4 waited"

    rm -rf "$work/report"  # third_rank looks into it
    third_rank KILL & local killer=$!
    ranks red passes
    wait "$killer"
    if (($(lines_of records.jsonl) > 0 && $(lines_of rank-1/records.jsonl) > 0)); then ok
    else wrong "the records of the others are gone"; fi
    if grep -q 'errors="0"' "$work/report/junit.xml" 2> /dev/null; then wrong "green"; else ok; fi
    rm -rf "$work/report"
    third_rank STOP & killer=$!
    ranks red passes LLMBENCH_RANK_WAIT=2
    wait "$killer"
    says "waited"
    kill -KILL "$(< "$work/stopped")" 2> /dev/null || true
}

if [[ $part == shards ]]; then
    test_shards
else
    found=
    top=$work
    for mpi in openmpi mpich; do
        if ! command -v "mpicxx.$mpi" "mpirun.$mpi" > /dev/null; then continue; fi
        found=1
        work=$top/$mpi log=$top/$mpi/log
        rm -rf "$work/report" && mkdir -p "$work" && : > "$log"
        program=$work/gates
        start=("mpirun.$mpi")
        if [[ $mpi == openmpi ]]; then start+=(--allow-run-as-root --oversubscribe); fi
        compiler=("mpicxx.$mpi")
        if command -v ccache > /dev/null; then compiler=(ccache "${compiler[@]}"); fi
        "${compiler[@]}" -std=c++20 -O0 -I. -Iextensions -DLLMBENCH_WITH_MPI -c tests/several/gates.cpp \
            -o "$program.o"
        "mpicxx.$mpi" "$program.o" -o "$program" -pthread
        serve "$program"
        test_mpi
        kill "$server"
        server=
    done
    [[ $found ]] || { echo "no MPI is installed"; exit 77; }
fi
echo "$passed passed, $failed failed"
((failed == 0)) || exit 1
[[ ! $stalled ]] || exit 77
