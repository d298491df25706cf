#!/usr/bin/env bash
# Measures all error rates of rates/ again, one file for each study:
#   tests/bench/measure_rates.sh FOLDER [STUDY...]
# TRIALS=600 measures that many trials a cell, instead of each study's own number. A study whose bound is
# not met is named at the end. With TRIALS=600 the whole takes about 90 minutes of CPU time.
set -euo pipefail
(($# > 0)) || { echo "usage: [TRIALS=N] $0 FOLDER [STUDY...]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
studies=("$@")
((${#studies[@]} > 0)) || studies=(precision pair difference verdict count history answer label drift setting capacity)
trials=()
if [[ ${TRIALS:-} ]]; then trials=(--trials "$TRIALS"); fi
cmake -S . -B build/bench -DCMAKE_BUILD_TYPE=Release -DLLMBENCH_BUILD_BENCH=ON
cmake --build build/bench --target error_rates
missed=()
for study in "${studies[@]}"; do
    echo "$study: $folder/$study.txt"
    nice -n 19 build/bench/tests/error_rates "$study" "${trials[@]}" > "$folder/$study.txt" || missed+=("$study")
done
((${#missed[@]} == 0)) || { echo "not met, see NOT MET in its file: ${missed[*]}"; exit 1; }
