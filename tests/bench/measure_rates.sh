#!/usr/bin/env bash
# Measures all error rates of rates.md again, with at least the trials of that page:
#   tests/bench/measure_rates.sh [--again] FOLDER [STUDY...]
# It says first how long that takes. A study is measured in shards, which are put together in FOLDER/STUDY.txt. The
# script may be ended at any time: begun again, it measures only the shards that are not there, or were measured
# by another command; with --again all. Bounds that are not met are named at the end: look at them.
#   TRIALS=600     that many trials a cell instead
#   JOBS=2         shards at the same time (each has two threads), at nice 19; default 1
#   RATES=PROGRAM  an llmbench_rates that is built already
set -euo pipefail
# name, shards, CPU minutes on an idle core, then the options of `llmbench_rates`. The second line of each shard's
# file has the CPU seconds that it took; minutes are measured for settings and saturation, else estimates. A search
# for capacities is no shorter in shards: each of them would find all true capacities.
all="
precision           8   2  precision --trials 600 --seed 77
calibrations        8   2  precision --only calibrations --trials 2000
pair-fresh          4   1  pair --only fresh --trials 600 --seed 77
pair-lasting        8   4  pair --only lasting --trials 4000
difference         12   8  difference --trials 600
verdict-replayed    6   6  verdict --only replayed --trials 600
verdict-noisy      10   6  verdict --only noisy --trials 1500
verdict-baselines   4   3  verdict --only baselines --trials 600
verdict-saturation  6   2  verdict --only saturation --trials 2400
verdict-tails       3   3  verdict --only tails --trials 600
count               6   3  count --trials 2000
history             8   6  history --trials 6000
fleet               6   4  fleet --trials 600
answer              4  39  answer --trials 1500
label               4  13  label --trials 1000
late                3   6  late --trials 600
drift               4   4  drift --trials 2400
setting             6   8  setting --trials 4000
capacity-search     1   6  capacity --only search --trials 600
capacity-gate       1   6  capacity --only gate --trials 600
capacity-varied     6   4  capacity --only varied --trials 60
capacity-workload   8   6  capacity --only workload --trials 100
"
names=$(awk 'NF {print $1}' <<< "$all")
refuse() {
    echo "$1: the studies are $(paste -sd' ' <<< "$names")" >&2
    exit 2
}
again=
if [[ ${1:-} == --again ]]; then again=yes && shift; fi
if [[ $# == 0 || $1 == -* || ! ${TRIALS:-1} =~ ^[1-9][0-9]*$ || ! ${JOBS:-1} =~ ^[1-9][0-9]*$ ]]; then
    refuse "usage: [TRIALS=N] [JOBS=N] $0 [--again] FOLDER [STUDY...]"
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
studies=()
for asked in "${@:-}"; do
    found=$(grep -E "^${asked:-.*}(-|$)" <<< "$names") || refuse "there is no study $asked"
    mapfile -t -O "${#studies[@]}" studies <<< "$found"
done

# Sets options, shards and minutes of a study.
read_study() {
    local trials
    read -r _ shards minutes options <<< "$(grep -E "^$1 " <<< "$all")"
    if [[ ${TRIALS:-} ]]; then
        trials=${options#*--trials }
        minutes=$(awk -v m="$minutes" -v now="$TRIALS" -v then="${trials%% *}" 'BEGIN {print m * now / then}')
        options=${options/--trials ${trials%% *}/--trials $TRIALS}
    fi
}
shard_file() { echo "$folder/$1.$2-of-$shards"; }
# A shard is there if the first line of its file is the command that would measure it.
is_there() { [[ -e $(shard_file "$1" "$2") && $(head -n 1 "$(shard_file "$1" "$2")") == "# $options --shard $2/$shards" ]]; }

total=0
for study in "${studies[@]}"; do
    read_study "$study"
    there=0
    for ((i = 1; i <= shards; ++i)); do
        if [[ $again ]]; then rm -f "$(shard_file "$study" "$i")"; fi
        if is_there "$study" "$i"; then there=$((there + 1)); fi
    done
    left=$(awk -v m="$minutes" -v n="$shards" -v k="$there" 'BEGIN {printf "%.1f", m * (n - k) / n}')
    total=$(awk -v a="$total" -v b="$left" 'BEGIN {print a + b}')
    echo "$study: about $left CPU minutes, $there of $shards shards are there"
done
echo "all: about $total CPU minutes"

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ ! ${RATES:-} ]]; then
    build=${LLMBENCH_BENCH_DIR:-build/bench}
    cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DLLMBENCH_BUILD_BENCH=ON
    cmake --build "$build" --target llmbench_rates
    RATES=$build/tests/llmbench_rates
fi

# measure STUDY SHARD: 1 if a bound is not met is no error.
measure() {
    local file status=0 command seconds
    file=$(shard_file "$1" "$2")
    command="$options --shard $2/$shards"
    local -a split
    read -r -a split <<< "$command"
    local TIMEFORMAT='%U %S'
    { time nice -n 19 "$RATES" "${split[@]}" > "$file.part" 2> "$file.errors" || status=$?; } 2> "$file.time"
    if ((status > 1)); then
        echo "llmbench_rates $command ended with $status: $(tail -n 1 "$file.errors")" >&2
        return "$status"
    fi
    seconds=$(awk '{print $1 + $2}' "$file.time")
    { printf '# %s\n# %s CPU s\n' "$command" "$seconds"; cat "$file.part"; } > "$file.whole"
    mv "$file.whole" "$file"
    rm "$file.part" "$file.errors" "$file.time"
}
# In each shard the same lines stand before the first row, and "[row N]" before each row, its own or not. What
# follows this line until the next one is right in the shard that has the row.
put_together() {
    local i files=()
    for ((i = 1; i <= shards; ++i)); do files+=("$(shard_file "$1" "$i")"); done
    awk -v shards="$shards" -v options="$options" '
        FNR == 1 { ++shard; row = -1; next }
        FNR == 2 { seconds += $2; next }
        /^\[row [0-9]+\]$/ { row = $2 + 0; if (row > last) last = row; next }
        row < 0 ? shard == 1 : row % shards == shard - 1 { text[row] = text[row] $0 "\n" }
        END {
            printf "# %s: %.1f CPU minutes\n", options, seconds / 60
            for (row = -1; row <= last; ++row) printf "%s", text[row]
        }' "${files[@]}" > "$folder/$1.txt"
}

# A shard that is under way ends with the script: a job's program is its child.
end_jobs() {
    local job
    for job in $(jobs -p); do pkill -P "$job" || true; done
}
trap end_jobs EXIT
trap 'exit 143' INT TERM
missed=()
for study in "${studies[@]}"; do
    read_study "$study"
    for ((i = 1; i <= shards; ++i)); do
        if is_there "$study" "$i"; then continue; fi
        if (($(jobs -rp | wc -l) >= ${JOBS:-1})); then wait -n; fi
        measure "$study" "$i" &
    done
    while [[ $(jobs -p) ]]; do wait -n; done
    put_together "$study"
    echo "$folder/$study.txt"
    if grep -q 'NOT MET' "$folder/$study.txt"; then missed+=("$study"); fi
done
for study in ${missed[@]+"${missed[@]}"}; do grep -H 'NOT MET' "$folder/$study.txt"; done
if ((${#missed[@]} > 0)); then
    echo "bounds that are not met: ${missed[*]}"
    exit 1
fi
