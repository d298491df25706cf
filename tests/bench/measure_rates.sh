#!/usr/bin/env bash
# Measures all error rates of rates.md again, with at least the trials of that page:
#   tests/bench/measure_rates.sh [--again] FOLDER [STUDY...]
# One file in FOLDER for each study, such as verdict or verdict-noisy. A study whose file is there is not
# measured again without --again. TRIALS=600 measures that many trials a cell instead. Studies with a bound
# that is not met are named at the end, with these bounds: look at them. At nice 19, about an hour of CPU time.
set -euo pipefail
# name, then the options of `llmbench_rates`
all="
precision           precision --trials 600 --seed 77
pair-fresh          pair --only fresh --trials 600 --seed 77
pair-lasting        pair --only lasting --trials 4000
difference          difference --trials 600
verdict-replayed    verdict --only replayed --trials 600
verdict-noisy       verdict --only noisy --trials 1500
verdict-baselines   verdict --only baselines --trials 600
verdict-saturation  verdict --only saturation --trials 2400
count               count --trials 2000
history             history --trials 6000
answer              answer --trials 1500
label               label --trials 1000
drift               drift --trials 2400
setting             setting --trials 4000
capacity            capacity --trials 600
"
names=$(awk 'NF {print $1}' <<< "$all")
refuse() {
    echo "$1: the studies are $(paste -sd' ' <<< "$names")" >&2
    exit 2
}
again=
if [[ ${1:-} == --again ]]; then again=yes && shift; fi
if [[ $# == 0 || $1 == -* || ! ${TRIALS:-1} =~ ^[1-9][0-9]*$ ]]; then
    refuse "usage: [TRIALS=N] $0 [--again] FOLDER [STUDY...]"
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
studies=()
for asked in "${@:-}"; do
    found=$(grep -E "^${asked:-.*}(-|$)" <<< "$names") || refuse "there is no study $asked"
    mapfile -t -O "${#studies[@]}" studies <<< "$found"
done
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${LLMBENCH_BENCH_DIR:-build/bench}
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DLLMBENCH_BUILD_BENCH=ON
cmake --build "$build" --target llmbench_rates
missed=()
for study in "${studies[@]}"; do
    file=$folder/$study.txt
    if [[ -e $file && ! $again ]]; then
        echo "$study: $file is there"
    else
        read -r -a options <<< "$(awk -v name="$study" '$1 == name {$1 = ""; print}' <<< "$all")"
        if [[ ${TRIALS:-} ]]; then options+=(--trials "$TRIALS"); fi
        echo "$study: $file"
        status=0
        nice -n 19 "$build/tests/llmbench_rates" "${options[@]}" > "$file.part" || status=$?
        if ((status > 1)); then
            echo "$study ended with $status: $file.part" >&2
            exit "$status"
        fi
        mv "$file.part" "$file"
    fi
    if grep -q 'NOT MET' "$file"; then missed+=("$study"); fi
done
for study in ${missed[@]+"${missed[@]}"}; do grep -H 'NOT MET' "$folder/$study.txt"; done
if ((${#missed[@]} > 0)); then
    echo "bounds that are not met: ${missed[*]}"
    exit 1
fi
