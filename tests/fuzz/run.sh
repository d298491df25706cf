#!/usr/bin/env bash
# Runs fuzzers beside each other, each from its corpus on.
#   tests/fuzz/run.sh SECONDS PROGRAM...
# Ten minutes of all of them:
#   cmake --preset fuzz && cmake --build --preset fuzz
#   bash tests/fuzz/run.sh 600 build/fuzz/tests/fuzz/fuzz_*
# What is found lies in the working directory as crash-NAME-HASH; `PROGRAM FILE` tries it again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

declare -A pid_of=()
for program in "$@"; do
    name=${program##*/fuzz_}
    mkdir "$work/$name"
    corpus=("$here/corpus/$name")
    if [[ $name == http_response || $name == metrics_page ]]; then corpus+=("$here/../data/real"); fi
    if [[ $name == dataset ]]; then cp "$here"/../data/*.{json,jsonl,csv,txt} "$work/$name"; fi
    "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
        -print_final_stats=1 -artifact_prefix="crash-$name-" \
        "$work/$name" "${corpus[@]}" > "$work/$name.log" 2>&1 &
    pid_of[$name]=$!
done
failed=0
for name in "${!pid_of[@]}"; do
    if wait "${pid_of[$name]}"; then
        coverage=$(grep -o 'cov: [0-9]* ft: [0-9]*' "$work/$name.log" | tail -n 1)
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
        echo "$name: $runs runs, $coverage, nothing found"
    else
        failed=1
        echo "$name: FAILED"
        grep -v '^#' "$work/$name.log" | tail -n 60
    fi
done
exit "$failed"
