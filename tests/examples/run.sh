#!/usr/bin/env bash
# Every example runs: several at a time because they mostly wait. Each
# ends as it says it does, and what they leave is held against the schemas of those who read it.
#   tests/examples/run.sh DIRECTORY LLMBENCH        where they were built, and the program, which serves
# Exits 77 where all is well but what the machine stalled.
set -euo pipefail
bin=$(realpath "${1:?usage: run.sh DIRECTORY LLMBENCH}")
llmbench=$(realpath "$2")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/too_busy.sh
source tests/support/too_busy.sh
source=$PWD
work=$(mktemp -d)
unset "${!LLMBENCH_@}"
export LC_ALL=C

trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT

# start STATUS NAME PROGRAM [ARGUMENT...]: in a folder of its own, in the background
names=() wanted=()
start() {
    while (($(jobs -rp | wc -l) > 5)); do sleep 0.2; done
    mkdir -p "$work/$2"
    printf '%q ' "${@:3}" > "$work/$2.command"
    { once "$2" & } 2> /dev/null
    names+=("$2") wanted+=("$1")
}
# With a server of its own: gates on a server that serves others too are invalid.
once() {
    local status=0 url='' server i
    : > "$work/$1.server"
    case $1 in
        api | speech) exec python3 "$source/tests/examples/own_apis.py" --port 0 ;;
        *) exec "$llmbench" serve --slots 32 --port 0 ;;
    esac >> "$work/$1.server" 2>&1 &
    server=$!
    for ((i = 0; i < 100; i++)); do
        url=$(sed -n 's/^listening on //p' "$work/$1.server")
        if [[ $url ]]; then break; fi
        sleep 0.1
    done
    [[ $url ]] || echo "the simulated server does not listen"
    (cd "$work/$1" && LLMBENCH_URL=$url bash -c "exec $(< "$work/$1.command")") \
        > "$work/$1.log" 2>&1 || status=$?
    kill "$server" 2> /dev/null || true
    wait "$server" 2> /dev/null || true
    echo "$status" > "$work/$1.status"
}
# The gateway waits for 700 us. That it adds no more than a millisecond is the machine's to say, on
# which five other examples run; that it adds so much is not.
adds_what_it_waits() {
    grep -A1 '^ *FAIL  *mean(ttft) <= baseline + 1 ms' "$1" |
        grep -qE 'measured \+[0-9.]+ ms .* interval \+[0-9.]+ to \+[0-9.]+ ms'
}
failed=0
too_busy=()
finish() {
    local i name
    while (($(jobs -rp | wc -l) > 0)); do sleep 0.1; done
    for i in "${!names[@]}"; do
        name=${names[$i]}
        if (($(< "$work/$name.status") == wanted[i])); then
            echo "runs: $name"
        elif [[ $name == gateway ]] && adds_what_it_waits "$work/$name.log"; then
            echo "runs: $name, which a busy machine makes slower than it waits"
        elif was_too_busy "$work/$name.log"; then
            stalled "$name"
            too_busy+=("$name")
        else
            failed=1
            echo "WRONG: $name ends with $(< "$work/$name.status") instead of ${wanted[$i]}:"
            sed 's/^/    | /' "$work/$name.log"
        fi
    done
    names=() wanted=()
}

for file in "$source"/examples/*.cpp "$source"/examples/extending/*.cpp; do
    name=$(basename "$file" .cpp)
    case $name in
        judge_again) ;;  # what reads comes below
        quickstart) start 0 quickstart "$bin/quickstart" --test-case="chat*" ;;  # ci/demo.sh: all
        server)
            start 0 server "$bin/server" --test-case="chat*"
            start 0 server-busy "$bin/server" --test-case="the server keeps*" ;;
        stored_baseline) start 77 stored_baseline env LLMBENCH_WRITE_BASELINE=1 "$bin/$name" ;;
        report)
            start 0 report "$bin/report"
            start 0 report-webhook python3 "$source/tests/examples/report.py" "$bin/report" "$llmbench"
            ;;
        googletest) if [[ -x $bin/googletest ]]; then start 0 googletest "$bin/googletest"; fi ;;
        *) start 0 "$name" "$bin/$name" ;;
    esac
done
# Others' recordings become lines of our own, which a unit test reads.
if command -v jq > /dev/null; then
    for name in dag_jsonl tpu_inference tracelab; do
        if jq -cs -f "examples/sessions/$name.jq" "tests/data/sessions/$name.jsonl" |
            cmp - "tests/data/sessions/$name.ours.jsonl"; then
            echo "converts: $name"
        else
            failed=1
            echo "WRONG: examples/sessions/$name.jq gives other lines than tests/data/sessions/$name.ours.jsonl"
        fi
    done
fi
# A night of main comes before what is held against it.
nights=LLMBENCH_HISTORY_DIR=$work/nights
start 0 real_gates-night env LLMBENCH_HISTORY=append "$nights" "$bin/real_gates" --test-case="TensorRT*"
finish
start 0 real_gates env "$nights" "$bin/real_gates"
start 0 real_gates-embeddings env LLMBENCH_API=openai_embeddings "$bin/embeddings_and_scores" --test-case="embeddings*"
start 0 real_gates-scores env LLMBENCH_API=sglang_score "$bin/embeddings_and_scores" --test-case="scores*"
if [[ " ${too_busy[*]} " != *" stored_baseline "* ]]; then
    start 0 stored_baseline "$bin/stored_baseline"
fi
start 0 judge_again "$bin/judge_again" "$work/quickstart/llmbench-report"
# Reports go to a scripted receiver in the place of curl. A gate without a server is news once.
mkdir "$work/receiver"
# shellcheck disable=SC2016  # for the script that it becomes
printf '%s\n' '#!/bin/sh' 'for to; do :; done; cat > "$SENT-${to##*/}"' > "$work/receiver/curl"
chmod +x "$work/receiver/curl"
send() {
    start 3 "$1" env LLMBENCH_URL=http://127.0.0.1:1 PATH="$work/receiver:$PATH" SENT="$work/$1.sent" \
        CHAT_WEBHOOK=http://host/chat DASHBOARD_URL=http://host/board "${@:2}" "$bin/report"
    finish
}
send report-news
send report-no_news LAST_RESULT="$work/report-news/llmbench-report/result.json"
sent=$(cd "$work" && echo report-*.sent-*; cat report-news.sent-chat report-*/llmbench-report/news.md)
if [[ $sent != "report-news.sent-board report-news.sent-chat report-no_news.sent-board
{\"text\": \"chat answers in time: invalid"* || -s $work/report-no_news/llmbench-report/news.md ]]; then
    failed=1
    echo "WRONG: examples/extending/report.cpp sent $sent"
fi

results=("$work"/*/llmbench-report/result.json)
python3 tests/formats/check.py results ci/result.schema.json "${results[@]}" || failed=1
if ((failed)); then exit 1; fi
if ((${#too_busy[@]} > 0)); then exit 77; fi
