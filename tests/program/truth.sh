#!/usr/bin/env bash
# llmbench serve, whose log is the truth, and what is measured against it.
#   tests/program/truth.sh LLMBENCH [PART...]     a part is a function below; none named means all of them
# Exits 77 where all is well but what the machine stalled.
set -euo pipefail
llmbench=$(realpath "${1:?usage: truth.sh LLMBENCH [PART...]}")
tests=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
pid=
trap 'kill $pid 2> /dev/null || true; rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" NO_COLOR CLICOLOR_FORCE
export LC_ALL=C USER=anna
# shellcheck source=tests/support/checks.sh
source "$tests/support/checks.sh"
cd "$work"

ends() {  # STATUS ARGUMENT...: so does llmbench
    what="llmbench ${*:2}"
    ended "$1" "$llmbench" "${@:2}"
}
lines() { if (($(wc -l < "$log") == $1)); then ok; else wrong "it says $(wc -l < "$log") lines, not $1"; fi; }
serve() {  # ARGUMENT...: a server in the background, $pid at $url and $port
    local tries
    : > served
    "$llmbench" serve --port 0 "$@" > served 2>&1 &
    pid=$!
    for ((tries = 0; tries < 1200; ++tries)); do
        url=$(sed -n 's/^listening on //p' served)
        if [[ $url ]]; then break; fi
        sleep 0.05
    done
    port=${url##*:}
}
served() {  # STATUS: it ends so when it is told to
    what="llmbench serve"
    kill "$pid"
    waited "$1"
    pid=
    cp served "$log"
}
ask() { python3 "$tests/program/truth_client.py" "$port" "$@"; }
# truth CHECK...: Python on `log`, the lines of truth.jsonl, and `asked`, those of the client
truth() {
    holds "the truth is another: $*" python3 - "$@" << 'END'
import json, os, sys
log = [json.loads(line) for line in open("truth.jsonl")]
asked = [json.loads(line) for line in open("asked")] if os.path.exists("asked") else []
head, requests, tail = log[0], [x for x in log if "received_ns" in x], log[-1]
for check in sys.argv[1:]:
    assert eval(check), check
END
}

# ---- llmbench serve: what it refuses
refusals() {
    refused() {
        ends 2 serve "${@:2}"
        says "$1"
        lines 1
    }
    refused '--first is "50": it must be a time, uniform(LOW, HIGH) or lognormal(MEDIAN, SIGMA)' --first 50
    refused '--first is "uniform(2s, 1s)": it must be a time from 0 to a day' --first 'uniform(2s, 1s)'
    refused "--every and --slots are both given: a server answers at a pace, or as an engine does" --every 10ms --slots 4
    refused '--tokens is "empirical(a)": it must be a number of tokens, uniform, normal or lognormal' --tokens 'empirical(a)'
    refused '--usage is "no": it must be asked, always or never' --usage no
    refused "--status is of the requests that are refused: it needs --fail P%" --status 429
    refused '--status is "200": it must be a whole number from 400 to 599' --fail 1% --status 200
    refused '--port is "70000": it must be a whole number from 0 to 65535' --port 70000
    refused '--host is "here": it must be an IP address of this machine' --host here
    refused "--log is no/where, which cannot be written: No such file" --log no/where
    refused "engine.decode_step is 0 s: from 1e-06 to 3600 s is allowed" --decode-step 0
    serve
    ends 1 serve --port "$port"
    says "cannot serve on port $port: "
    served 0
}

# ---- its log says what a client sees: no token is early, none was there before it was handed over
log_is_true() {
    serve --first 30ms --every 'uniform(2ms, 4ms)' --log truth.jsonl
    ask 20 8 > asked
    served 0
    says "20 requests, 160 hand-overs, late: p99"
    truth 'head["schema"] == "llmbench/truth/1" and head["server"].startswith("paced: the first event after 0.03 s")' \
        'len(requests) == len(asked) == 20 and tail["end"] and tail["requests"] == 20 and tail["hand_overs"] == 160' \
        'all(r["id"] == a["id"] and r["ended"] == "ok" and r["output_tokens"] == 8 for r, a in zip(requests, asked))' \
        'all(a["before_ns"] <= r["received_ns"] for r, a in zip(requests, asked))' \
        'all(len(r["tokens_ns"]) == 8 for r in requests)' \
        'all(t >= 30e6 + 2e6 * k for r in requests for k, t in enumerate(r["tokens_ns"]))' \
        'all(r["received_ns"] + t <= c for r, a in zip(requests, asked) for t, c in zip(r["tokens_ns"], a["tokens_ns"]))' \
        'all(r["tokens_ns"][-1] <= r["end_ns"] <= a["end_ns"] - r["received_ns"] for r, a in zip(requests, asked))'
    # A body in chunks, as some clients send it; several tokens an event, reasoning, usage that nobody asked for.
    serve --first 1ms --every 1ms --tokens-per-event 3 --usage always --log truth.jsonl
    ask 2 8 --chunked --no-id > asked
    python3 - "$port" > said << 'END'
import sys, urllib.request
body = b'{"stream":true,"messages":[{"role":"user","content":"one two"}],"max_tokens":4}'
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/v1/chat/completions", body).read().decode())
END
    served 0
    truth '[r["tokens_ns"].__len__() for r in requests] == [3, 3, 2]' 'requests[0]["first_event_tokens"] == 3' \
        'requests[0]["id"] is None and requests[2]["prompt_tokens"] == 2'
    holds "it sends no usage" grep -q '"completion_tokens":4' said
}

# ---- its log is whole, however a request or the server ends
log_is_whole() {
    serve --first 1ms --every 1s --log truth.jsonl
    ask 1 100 > asked 2> /dev/null &
    local client=$!
    what="a request that is served"
    holds "it has none" timeout 60 bash -c "until (exec 3<>/dev/tcp/127.0.0.1/$port; printf 'GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n' >&3; grep -q 'requests_running{.*} 1' <&3); do sleep 0.1; done"
    served 0
    wait $client || true
    truth 'len(requests) == 1 and requests[0]["ended"] == "open" and requests[0]["output_tokens"] >= 1 and tail["end"]'
    rm asked
    local fault way
    for way in "refused --fail 100% --status 429" "reset --drop 100%"; do
        read -r -a fault <<< "$way"
        serve --first 1ms --every 1ms --log truth.jsonl "${fault[@]:1}"
        ask 1 8 > /dev/null 2>&1 || true
        served 0
        truth "[r['ended'] for r in requests] == ['${fault[0]}']" \
            "requests[0]['status'] == (429 if '${fault[0]}' == 'refused' else 200)"
    done
    serve --first 1ms --every 1ms --stall 100% --log truth.jsonl
    ends 3 run --url "$url" --users 2 --timeout 200ms --requests 20 --warmup 0 --prompt 'one two' --max-tokens 8
    served 0
    truth 'requests and all(r["ended"] == "stalled" for r in requests)'
    serve --log /dev/full
    ask 1 2 > /dev/null
    served 1
    says "--log: /dev/full cannot be written: No space left on device"
}

# ---- each API, as an engine, with TLS
apis() {
    local small=(--users 4 --warmup 2 --requests 40 --repeats 2) api
    serve --first 2ms --every 1ms --log truth.jsonl
    for api in openai_chat openai_completions openai_responses anthropic ollama tgi sglang llama_cpp triton; do
        ends 0 run --url "$url" --api "$api" --model simulated "${small[@]}" --prompt 'one two three' --max-tokens 6 --slo 'p50(e2e) <= 5 s'
    done
    served 0
    truth '{r["api"] for r in requests} >= {"openai_chat", "openai_responses", "anthropic", "ollama", "tgi", "triton"}' \
        'all(r["ended"] == "ok" for r in requests)'
    serve --slots 2 --decode-step 1ms --prefill 0.01ms --tls cert.pem --log truth.jsonl
    ends 0 run --url "$url" --ca-file cert.pem "${small[@]}" --prompt-tokens 16 --output-tokens 6 --slo 'p50(e2e) <= 5 s'
    ends 2 run --url "$url" "${small[@]}" --slo 'p50(e2e) <= 5 s'
    says "the server's certificate is self-signed"
    served 0
    truth 'head["server"].startswith("simulated, 2 slots")' 'len(requests) >= 84'
}

parts=("${@:2}")
if ((${#parts[@]} == 0)); then parts=(refusals log_is_true log_is_whole apis); fi
for part in "${parts[@]}"; do rm -rf "${work:?}"/*; "$part"; done
echo "$passed checks passed, $failed failed"
if ((failed > 0)); then exit 1; fi
if [[ $stalled ]]; then exit 77; fi
