#!/usr/bin/env bash
# Meets real servers, one after another: installs each, starts it, checks it, ends it, and keeps what
# it said. ci/reality.sh builds PROGRAM, which is gates.cpp.
#   tests/reality/run.sh PROGRAM BUILD_DIR NAME...
# Every server leaves BUILD_DIR/NAME/met.md, its line of README.md's list, the log of every check and
# of the server, and BUILD_DIR/NAME/recorded/, its raw answers. Exits 1 where a check failed or a
# server could not be had.
set -euo pipefail
program=$(realpath "${1:?usage: run.sh PROGRAM BUILD_DIR NAME...}")
mkdir -p "${2:?usage: run.sh PROGRAM BUILD_DIR NAME...}"
build=$(cd "$2" && pwd)
names=("${@:3}")
# shellcheck source=tests/reality/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# What a caller has set for gates of its own must not reach these.
unset "${!LLMBENCH_@}" "${!SERVER_@}" API_KEY
# With it servers compile their modules anew at each start.
unset PYTHONDONTWRITEBYTECODE

# --- the server that runs

running=''   # its process group

# start_server [normal|eos|reasoning|API]: sets $url
start_server() {
    local port deadline=$((SECONDS + 900))
    port=$(free_port)
    url=http://127.0.0.1:$port
    setsid bash "$reality/start.sh" "$build" "$server" "$port" "${1:-normal}" \
        >> "$home/server.log" 2>&1 &
    running=$!
    until curl -sf -o /dev/null "$url$ready"; do
        if ((SECONDS > deadline)) || ! kill -0 "$running" 2> /dev/null; then
            echo "$server did not become ready; its log ends:" >&2
            tail -n 20 "$home/server.log" >&2
            end_server
            return 1
        fi
        sleep 0.3
    done
}
end_server() {
    [[ $running ]] || return 0
    kill -TERM -- "-$running" 2> /dev/null || true
    local i
    for ((i = 0; i < 50; i++)); do
        kill -0 -- "-$running" 2> /dev/null || break
        sleep 0.2
    done
    kill -KILL -- "-$running" 2> /dev/null || true
    wait "$running" 2> /dev/null || true
    running=''
}
trap end_server EXIT
trap 'exit 1' INT TERM

# --- checks

# check NAME TEST_CASES [FIELD=VALUE...]: those cases of gates.cpp. What a server refuses is an
# invalid run to the gate, so the assertions alone tell whether it went as it has to.
check() {
    local log=$home/check-$1.log status=0
    echo "   $1"
    env SERVER_URL="${url:-}" SERVER_API="$api" SERVER_MODEL="$(model_of "$api")" SERVER_READY="$ready" \
        SERVER_LENGTHS="$lengths" SERVER_CONTEXT="$context" SERVER_PAGE="$page" SERVER_GAUGES="$gauges" \
        SERVER_TTFT="$own_ttft" SERVER_TPOT="$own_tpot" SERVER_TPOT_COUNT="$own_tpot_count" \
        SERVER_EXTRA_BODY="$extra_body" SERVER_CACHE="$cache" LLMBENCH_REPORT_DIR="$home/report-$1" "${@:3}" \
        timeout 1800 "$program" --test-case="$2" > "$log" 2>&1 || status=$?
    local refusal
    refusal=$(grep -om1 'POST [^ ]* answered HTTP 40[134][: ].*' "$log" || true)
    if [[ $1 == wrong* && $status == 2 && $refusal ]]; then  # told before the load
        echo "     $1: $refusal"
        echo "$1: $refusal" >> "$home/met.txt"
        passed+=("$1")
        return
    fi
    if ((status == 2)) || grep -q 'has left its process group' "$log" ||
        ! grep -Eq 'test cases: +[1-9][0-9]* \|.*\| 0 failed' <(tr -s ' ' < "$log"); then
        echo "   NOT OK: $1 (exit code $status), see $log"
        grep -E -A3 'ERROR|refused|left its process group' "$log" | head -n 12 || true
        failed+=("$1")
        return
    fi
    sed -n "s/^MET /     /p" "$log"
    sed -n "s/^MET /$1: /p" "$log" >> "$home/met.txt"
    passed+=("$1")
}

# meet: everything that the server whose file was taken can do
meet() {
    local all=() each
    read -ra all <<< "$apis"
    api=${all[0]}
    passed=() failed=() url='' asks=()
    [[ $lengths != refused ]] || asks=(--refuses-ignore-eos)
    rm -rf "$home"/report-* "$home"/check-*.log "$home/recorded" "$home/met.txt" "$home/server.log"
    SERVER_START="bash '$reality/start.sh' '$build' '$server' {port}" started process "process:*"
    start_server || { failed+=(start); return; }
    # A page on a port of its own is where the server's start has said.
    [[ $page != told ]] || page=$(< "$home/page")
    python3 "$reality/record.py" "$url" "$home/recorded" --apis "$apis" --model "$model" \
        --rerank-model "$(model_of rerank)" --context "${context:-0}" --page "$page" "${asks[@]}"
    check running "$(loads):*"
    [[ ! $whole ]] || check whole "whole:*"
    [[ $api == plain_text || $api == *generate* || $(loads) == scores ]] || check conversations "conversations:*"
    [[ ! $wrong_model ]] || check "wrong model" "model:*"
    [[ ! $context ]] || check overflow "overflow:*"
    [[ ! $cache ]] || check cache "cache:*"
    [[ ! $batched ]] || check batched "batched:*"
    [[ ! $page ]] || check page "page:*"
    [[ ! $own_ttft ]] || check "own times" "its own times:*"
    for each in "${all[@]:1}"; do
        api=$each
        check "$each" "$(loads):*"
    done
    api=${all[0]}
    end_server
    if [[ $key ]]; then
        export API_KEY=the-right-key
        start_server || { failed+=(key); return; }
        unset API_KEY
        check key "key:*" LLMBENCH_API_KEY=the-right-key
        check "wrong key" "wrong key:*" LLMBENCH_API_KEY=a-wrong-key \
            SERVER_KEY_REFUSED="$key_refused"
        python3 "$reality/record.py" "$url" "$home/recorded" --apis "${all[0]}" --model "$model" \
            --key a-wrong-key "${asks[@]}"
        end_server
    fi
    if [[ $ends ]]; then
        start_server eos || { failed+=(ends); return; }
        check ends "ends:*"
        end_server
    fi
    if [[ $reasons ]]; then
        start_server reasoning || { failed+=(reasoning); return; }
        check reasoning "reasoning:*"
        python3 "$reality/record.py" "$url" "$home/recorded" --apis "${all[0]}" --model "$model" \
            --reasoning
        end_server
    fi
    for each in $scores; do  # what it does only where it was started for that
        start_server "$each" || { failed+=("$each"); return; }
        api=$each
        check "$each" "scores:*"
        python3 "$reality/record.py" "$url" "$home/recorded" --apis "$each" --model "$model" --answers
        end_server
    done
    api=${all[0]}
    SERVER_START="bash '$reality/killed.sh' '$build' '$server' {port}" started killed "killed:*"
}
# model_of API: a server may have another one that scores
model_of() { if [[ $1 == rerank && $rerank_model ]]; then echo "$rerank_model"; else echo "$model"; fi; }
# loads: the test cases of a load on $api
loads() { if [[ $api == openai_embeddings || $api == rerank ]]; then echo scores; else echo running; fi; }
# started NAME TEST_CASES: a check that starts the server itself, by $SERVER_START
started() { check "$1" "$2" SERVER_START="$SERVER_START" SERVER_KILL="$home/kill"; }

row() {
    local own own_apis checks
    checks=$(printf ', %s' "${passed[@]}")
    own=$(sed -n 's/^own times: //p' "$home/met.txt" 2> /dev/null | paste -sd ';' | sed 's/;/; /g')
    local IFS=,
    own_apis=$apis${scores:+ $scores}
    echo "- **$title** $version (${own_apis// /, }): ${checks:2}${failed[*]:+; NOT: ${failed[*]}}${own:+; own times: $own}"
}

# install_all: the server, and before it the one that it stands in front of
install_all() {
    set -e
    if [[ $behind ]]; then
        (take "$behind" && mkdir -p "$home" && install)
    fi
    install
}

make_models
bad=0
for name in "${names[@]}"; do
    take "$name"
    mkdir -p "$home"
    echo
    echo "== $title $version"
    # A function that is called by `if` does not stop at its first error: hence the shell of its own.
    set +e
    (install_all) > "$home/install.log" 2>&1
    status=$?
    set -e
    if ((status != 0)); then
        echo "   NOT OK: it could not be installed; $home/install.log ends:"
        tail -n 5 "$home/install.log"
        bad=1
        continue
    fi
    meet
    row > "$home/met.md"
    cat "$home/met.md"
    ((${#failed[@]} == 0)) || bad=1
done
exit "$bad"
