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
    refused "--cert is of https://: it needs --key FILE" --cert no.pem
    refused "--key is of https://: it needs --cert FILE" --key no.pem
    refused '--cert is "no.pem": it must be a file with a certificate in PEM' --cert no.pem --key no.pem
    # A second server leaves the log of the first as it is.
    serve --log truth.jsonl
    cp truth.jsonl before.jsonl
    ends 1 serve --port "$port" --log truth.jsonl
    says "cannot serve on port $port: "
    ends 2 serve --port 0 --log truth.jsonl
    says "--log is truth.jsonl, which another \`llmbench serve\` writes"
    holds "the log of the first is another" cmp truth.jsonl before.jsonl
    served 0
    rm truth.jsonl before.jsonl
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
    # guides/program.md shows this line.
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 10 -keyout key.pem -out cert.pem \
        -subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2> openssl.log
    serve --slots 2 --decode-step 1ms --prefill 0.01ms --cert cert.pem --key key.pem --log truth.jsonl
    ends 0 run --url "$url" --ca-file cert.pem "${small[@]}" --prompt-tokens 16 --output-tokens 6 --slo 'p50(e2e) <= 5 s'
    ends 2 run --url "$url" "${small[@]}" --slo 'p50(e2e) <= 5 s'
    says "the server's certificate is self-signed"
    served 0
    truth 'head["server"].startswith("simulated, 2 slots")' 'len(requests) >= 84'
}

# ---- llmbench judge --truth: an error that is planted is found
# error_is METRIC STATISTIC MS WITHIN_MS: of the last judgement with --out errors.json
error_is() {
    holds "the $2 of $1 is not $3 ms" python3 - "$@" << 'END'
import json, sys
metric, statistic, ms, within = sys.argv[1], sys.argv[2] + "_s", float(sys.argv[3]), float(sys.argv[4])
found = [e[statistic] for e in json.load(open("errors.json"))["errors"] if e["metric"] == metric and e["definition"] == "llmbench"]
print(metric, found)
assert abs(1e3 * found[0] - ms) <= within
END
}
planted_errors() {
    serve --first 30ms --every 2ms --log truth.jsonl
    ask 110 6 --csv plain.csv > asked
    # The same client, whose log is of the same requests, 3 ms late.
    sed 1d plain.csv | awk -F, 'BEGIN {print "id,ttft_ms,tpot_ms,e2e_s"} {printf "%s,%.6f,%s,%s\n", $1, $2 + 3, $3, $4}' > late.csv
    served 0
    # On a busy machine the server was interrupted here and there, and what it does not know is no error.
    sed -i 's/"doubts":\[.*\]}/"doubts":[]}/' truth.jsonl
    ends 0 judge plain.csv --truth truth.jsonl --out plain.json --slo 'p99(ttft_error) <= 5 min' --slo 'max(e2e_error) <= 5 min'
    says "110 requests, matched by id" "PASS  p99(ttft_error) <= 5 min  measured"
    ends 0 judge late.csv --truth truth.jsonl --out errors.json
    local bias
    bias=$(python3 -c 'import json; print(1e3 * json.load(open("plain.json"))["errors"][0]["bias_s"])')
    error_is ttft bias "$(python3 -c "print($bias + 3)")" 0.00001
    ends 1 judge late.csv --truth truth.jsonl --slo 'bias(ttft_error) <= 2.9 ms' --slo 'max(tpot_error) <= 5 min'
    says "FAIL  bias(ttft_error) <= 2.9 ms" "PASS  max(tpot_error)"
    # What the truth does not know is no error: the server was interrupted for so long while it handed over.
    sed 's/"doubts":\[.*\]}/"doubts":[[0,3000000]]}/' truth.jsonl > doubted.jsonl
    ends 0 judge late.csv --truth doubted.jsonl --out errors.json
    says "110 events of the log known to within 3 ms or less only"
    error_is ttft bias "$(python3 -c 'import csv, json
true = {r["id"]: r["tokens_ns"][0] / 1e6 for r in map(json.loads, open("truth.jsonl")) if "received_ns" in r}
late = [float(r["ttft_ms"]) - true[r["id"]] - 3 for r in csv.DictReader(open("late.csv"))]
print(sum(max(x, 0) for x in late) / len(late))')" 0.00001
    # JSON lines, without ids, in the order of the requests.
    sed 1d late.csv |
        awk -F, '{printf "{\"ttft_ms\": %s, \"itl_us\": [1, 2, 3%s]}\n", $2, NR == 9 ? "" : ", 4, 5"}' > late.jsonl
    ends 0 judge late.jsonl --truth truth.jsonl --match order --out errors.json
    says "matched by order" "1 request with another number of events in the log: infinite error"
    error_is ttft bias "$(python3 -c "print($bias + 3)")" 0.00001
    # A request that is left out is infinitely wrong, as is one that failed; one that nobody served, too.
    sed 50d plain.csv > some.csv
    ends 1 judge some.csv --truth truth.jsonl --slo 'max(ttft_error) <= 5 min'
    says "1 request served and not in the files: infinite error" "measured infinite"
    ends 1 judge some.csv --truth truth.jsonl --slo 'bias(ttft_error) <= 5 min'  # which the others' mean would hide
    says "FAIL  bias(ttft_error) <= 5 min  measured infinite"
    sed '50s/id-[0-9]*/id-x/' plain.csv > some.csv
    ends 1 judge some.csv --truth truth.jsonl --slo 'max(ttft_error) <= 5 min'
    says "1 request in the files and not in the log"
    awk -F, 'NR == 1 {print $0 ",ok"} NR > 1 {print $0 "," (NR == 50 ? "false" : "true")}' plain.csv > some.csv
    ends 1 judge some.csv --truth truth.jsonl --slo 'max(ttft_error) <= 5 min'
    says "1 request served, and failed in the files"
    sed '50s/"ended":"ok"/"ended":"reset"/' truth.jsonl > other.jsonl
    ends 1 judge plain.csv --truth other.jsonl --slo 'max(ttft_error) <= 5 min'
    says "1 request completed in the files, and not served whole"
    # The last requests, too, and a row without a value.
    head -n 101 plain.csv > some.csv
    ends 1 judge some.csv --truth truth.jsonl --slo 'p99(ttft_error) <= 5 min'
    says "10 requests served and not in the files: infinite error" "p99(ttft_error) <= 5 min  measured infinite"
    awk -F, -v OFS=, 'NR == 50 {$2 = ""} 1' plain.csv > some.csv
    ends 1 judge some.csv --truth truth.jsonl --slo 'max(ttft_error) <= 5 min' --slo 'max(tpot_error) <= 5 min'
    says "1 request without a value in the files: infinite error" "FAIL  max(ttft_error)" "PASS  max(tpot_error)"
    # As a spreadsheet writes it: a byte order mark, CR LF, quotes, a comma in a cell.
    { printf '\xef\xbb\xbf'; awk -F, 'NR == 1 {print "\"" $1 "\",\"note\",ttft_ms,tpot_ms,e2e_s"}
        NR > 1 {print "\"" $1 "\",\"a, \"\"b\"\"\"," $2 "," $3 "," $4}' plain.csv | sed 's/$/\r/'; } > sheet.csv
    ends 0 judge sheet.csv --truth truth.jsonl --out sheet.json
    says "110 requests, matched by id"
    holds "a sheet is read otherwise" cmp plain.json sheet.json
    # Rows in the order in which requests ended: their starts tell which is which.
    python3 - << 'END'
import json
head, *lines = open("truth.jsonl").read().splitlines()
requests = [json.loads(line) for line in lines if "received_ns" in line][:3]
with open("side.jsonl", "w") as log:  # side by side, the first one ends last
    print(head, file=log)
    for i, r in enumerate(requests):
        r["received_ns"] = requests[0]["received_ns"] + 100000000 * i
        r["end_ns"] = 1000000000 - 300000000 * i
        r["tokens_ns"], r["doubts"] = [50000000 * (i + 1)] * len(r["tokens_ns"]), []
        print(json.dumps(r), file=log)
with open("ended.csv", "w") as rows, open("started.csv", "w") as started:
    print("ttft_ms", file=rows)
    print("start,ttft_ms", file=started)
    for i in (2, 1, 0):
        print(50 * (i + 1), file=rows)
        print(100 + i, 50 * (i + 1), sep=",", file=started)
END
    ends 0 judge started.csv --truth side.jsonl --match order --slo 'max(ttft_error) <= 0.001 ms'
    says "matched by order" "PASS  max(ttft_error)"
    # A token of four words in one event is divided alike on both sides.
    sed 's/"output_tokens":[0-9]*,"first_event_tokens":1/"output_tokens":24,"first_event_tokens":4/' truth.jsonl > several.jsonl
    python3 - << 'END'
import json
with open("several.csv", "w") as rows:
    print("id,tpot", file=rows)
    for r in map(json.loads, open("several.jsonl")):
        if "received_ns" in r:
            print(r["id"], (r["tokens_ns"][-1] - r["tokens_ns"][0]) * 1e-9 / 23, sep=",", file=rows)
END
    ends 0 judge several.csv --truth several.jsonl --slo 'max(tpot_error) <= 0.001 ms'
    says "PASS  max(tpot_error)"
    # What is refused.
    refused() {
        ends 2 judge "${@:2}"
        says "$1"
        lines 1
    }
    refused "the rows may stand in the order in which their requests ended" ended.csv --truth side.jsonl --match order
    for file in plain.csv truth.jsonl ./plain.csv; do
        refused "--out is $file, which is read: name another file" plain.csv --truth truth.jsonl --out $file
    done
    sed '7p; s/"requests":110/"requests":111/' truth.jsonl > twice.jsonl
    refused "twice.jsonl: it has the id id-5 twice" plain.csv --truth twice.jsonl
    # A log without the requests that a client got wrong, or of two servers, is no truth.
    sed 7d truth.jsonl > other.jsonl
    refused "other.jsonl: its end counts 110 requests, and it has 109: give the whole log" plain.csv --truth other.jsonl
    cat truth.jsonl truth.jsonl > other.jsonl
    refused "other.jsonl:113: the log ends before this line: give one log of one server" plain.csv --truth other.jsonl
    { sed '$d' truth.jsonl; head -n 1 truth.jsonl; } > other.jsonl
    refused "other.jsonl:112: received_ns is null, every request has one" plain.csv --truth other.jsonl
    sed 's/"doubts":\[\]/"doubts":[[0,"x"]]/' truth.jsonl > other.jsonl
    refused "other.jsonl:2: doubts is a list, pairs of an event and nanoseconds are allowed" plain.csv --truth other.jsonl
    sed s/tpot_ms/tpot_min/ plain.csv > some.csv
    refused "some.csv:2: tpot_min has no known unit: a name such as tpot_s, _ms, _us or _ns is allowed" some.csv --truth truth.jsonl
    sed 7d late.jsonl > some.jsonl
    refused "the files have 109 requests and truth.jsonl has 110, and no id tells which is which" some.jsonl --truth truth.jsonl
    refused "plain.csv: it is no log of \`llmbench serve\`" plain.csv --truth plain.csv
    refused "--slo is \"p99(ttft) <= 1 ms\": it must be p50, p90" plain.csv --truth truth.jsonl --slo 'p99(ttft) <= 1 ms'
    refused "--match is of --truth FILE" plain.csv --match id --slo 'p99(ttft) <= 1 ms'
    refused "--report is of verdicts on a run" plain.csv --truth truth.jsonl --report here
    printf 'ttft_ms\n-1\n' > some.csv
    refused "some.csv:2: ttft_ms is \"-1\", a time from 0 is allowed" some.csv --truth truth.jsonl
    head -n 51 plain.csv > few.csv
    head -n 51 truth.jsonl > few.jsonl
    ends 3 judge few.csv --truth few.jsonl --slo 'p99(ttft_error) <= 1 ms'
    says "INVALID  p99(ttft_error) <= 1 ms  50 requests have no value at that percentile: 100 are needed"
}
# A tool's own file, by a log in which each first token came 3 ms earlier.
planted_in_files() {
    local files=$tests/data/files tool file
    for tool in vllm:vllm-0.33-chat-ok-1.json sglang:sglang-chat-ok-1.jsonl guidellm:guidellm-ok-1.json \
        aiperf:aiperf-ok-1/profile_export.jsonl; do
        file=$files/${tool#*:}
        what="the log of ${tool#*:}"
        python3 "$tests/program/truth_of_file.py" "${tool%:*}" "$file" 3 > truth.jsonl
        ends 0 judge "$file" --truth truth.jsonl --match ranks --out errors.json
        error_is ttft_from_send p50 3 0.002
        error_is ttft_from_send bias 3 0.002
        # vLLM numbers its ids, and AIPerf writes them down.
        if [[ $tool == vllm* || $tool == aiperf* ]]; then
            ends 0 judge "$file" --truth truth.jsonl --out errors.json
            says "matched by id"
            error_is ttft_from_send max 3 0.002
        fi
    done
    ends 0 judge "$file" --truth truth.jsonl --out errors.json --slo 'p50(ttft_from_send_error) <= 3.01 ms'
    says "matched by id" "as AIPerf has it"
    error_is ttft_from_send max 3 0.002
    # Requests that ran side by side, without ids: which is which is not known.
    python3 "$tests/program/truth_of_file.py" sglang "$files/sglang-chat-ok-1.jsonl" 3 |
        sed -E 's/"received_ns": ([0-9]+)000000000/"received_ns": \11000000/' > truth.jsonl
    ends 2 judge "$files/sglang-chat-ok-1.jsonl" --truth truth.jsonl
    says "the order of requests is ambiguous: those that arrived within 20 ms of each other"
}
# Ours, by ids: two gates in one log, of which each has a check before its load, and two runs.
own_gates() {
    serve --first 10ms --every 1ms --log truth.jsonl
    printf '%s\n' "url = \"$url\"" 'users = 2' 'requests = 20' 'repeats = 2' 'output-tokens = 4' \
        '[first]' 'slo = ["p50(e2e) <= 5 s"]' '[second]' 'slo = ["p50(e2e) <= 5 s"]' > gates.toml
    for run in 1 2; do
        ends 0 run --config gates.toml --report "run-$run"
    done
    served 0
    ends 0 judge run-2 --truth truth.jsonl --slo 'p50(ttft_error) <= 5 min'
    says "matched by id" "of the log of other runs, before or after"
    # shellcheck disable=SC2016  # for the shell that holds the test
    holds "a request of another run or gate counts" bash -c '! grep -q infinite "$1"' - "$log"
    ends 0 judge run-1 --truth truth.jsonl --gate second --slo 'p50(ttft_error) <= 5 min'
    # shellcheck disable=SC2016  # for the shell that holds the test
    holds "a request of another run or gate counts" bash -c '! grep -q infinite "$1"' - "$log"
    ends 2 judge run-1 --truth truth.jsonl --out run-1/records.jsonl
    says "which is read: name another file"
}
# Ours, by ids: repeats, warm-up and all.
own_errors() {
    serve --first 10ms --every 1ms --log truth.jsonl
    ends 0 run --url "$url" --users 4 --warmup 4 --requests 60 --repeats 2 --prompt-tokens 16 --output-tokens 6 \
        --slo 'p50(e2e) <= 5 s'
    ends 0 judge llmbench-report --truth truth.jsonl --slo 'p50(ttft_error) <= 5 min' --slo 'p50(itl_error) <= 5 min'
    says "128 requests, matched by id" "the log has no end: its server still runs"
    served 0
    ends 1 judge llmbench-report --truth truth.jsonl --slo 'bias(ttft_error) <= 0 ms' --out errors.json
    says "1 request of the log of other runs, before or after" "the server was late by p99"
    # No token can be there before it was handed over, whatever the machine does.
    holds "a token was there too early" python3 -c 'import json
assert all(e["bias_s"] > 0 and e["lost"] == 0 for e in json.load(open("errors.json"))["errors"] if "ttft" in e["metric"])'
}

# ---- llmbench doctor: what it says stands in its file, however busy this machine is
examinations() {
    local status=0
    what="llmbench doctor"
    "$llmbench" doctor > "$log" 2>&1 || status=$?
    holds "it ends with $status" test "$status" -le 1
    says_like '^On this machine times are (right within|not right)'
    says "a thread that sleeps wakes up late" "(doctor.json)"
    # found CHECK...: Python on `d`, doctor.json
    found() {
        holds "doctor.json is another: $*" python3 - "$@" << 'END'
import json, sys
d = json.load(open("doctor.json"))
for check in sys.argv[1:]:
    assert eval(check), (check, d)
END
    }
    found 'd["schema"] == "llmbench/doctor/1" and d["server"] is None and d["machine"]["cores"] >= 1' \
        '[e["streams"] for e in d["machine"]["errors"]][:3] == [1, 32, 1000]' \
        'all(e["failed"] == 0 and e["ttft_p99_s"] >= e["ttft_p50_s"] >= 0 for e in d["machine"]["errors"][:3])' \
        'all(e["threads"] in (1, 2) and e["stamps"] in ("kernel", "read") for e in d["machine"]["errors"])' \
        '(d["machine"]["streams"] > 0) == d["says"].startswith("On this machine times are right within ")'
    serve --first 5ms --every 1ms
    status=0
    "$llmbench" doctor --url "$url" --users 4 --duration 5s --name mine > "$log" 2>&1 || status=$?
    holds "it ends with $status" test "$status" -le 1
    says "With 4 users, 10 repeats" "a gate of 5 min finds a regression of"
    says_like 'against a baseline in turns, [0-9.e+-]+ % at once\.$'
    found 'd["server"]["repeats"] == 10 and d["server"]["load"] == "4 users"' \
        'all(m["found_in_turns"] > m["found_at_once"] > 0 and m["found_by_a_limit"] > 0 for m in d["server"]["metrics"])' \
        '{m["statistic"] for m in d["server"]["metrics"]} >= {"mean(ttft)", "p90(ttft)", "mean(tpot)"}'
    # A calibration of a gate of that name is taken.
    holds "the calibration is of another gate" grep -q '"mine"' llmbench-doctor/calibration.json
    LLMBENCH_CALIBRATION=llmbench-doctor/calibration.json ends 0 run --name mine --url "$url" --users 4 \
        --warmup 4 --requests 40 --slo 'mean(ttft) <= 5 s'
    served 0
    # Each stream takes two files, as client and server are one process.
    status=0
    (ulimit -n 300; "$llmbench" doctor) > "$log" 2>&1 || status=$?
    holds "it ends with $status" test "$status" -le 1
    says "  1000 streams: not tried, this process may open 300 files (ulimit -Hn)"
    found 'd["machine"]["limited_by_files"] and [e["streams"] for e in d["machine"]["errors"]] == [1, 32]'
    # A place where its file cannot be written is told before the measurement.
    ends 2 doctor --out no/where.json
    says "no/where.json"
    says_not "1 streams"
    # A server whose answers fail has no noise to tell.
    serve --first 5ms --every 1ms --fail 50%
    ends 3 doctor --url "$url" --users 4 --duration 5s --name mine
    says "of the requests failed"
    served 0
    # Who interrupts it learns nothing, and is told so.
    rm -f doctor.json
    what="llmbench doctor, interrupted"
    status=0
    "$llmbench" doctor > "$log" 2>&1 &
    local doctor=$!
    for ((i = 0; i < 600; ++i)); do grep -q '1 streams' "$log" && break; sleep 0.1; done
    kill -TERM "$doctor"
    wait "$doctor" || status=$?
    holds "it ends with $status" test "$status" -eq 3
    says "interrupted: nothing is said of this machine"
    holds "it writes doctor.json" test ! -e doctor.json
    ends 2 doctor --users 4
    says "--users is of a server: it needs --url"
}

parts=("${@:2}")
if ((${#parts[@]} == 0)); then parts=(refusals log_is_true log_is_whole apis planted_errors planted_in_files own_gates own_errors examinations); fi
for part in "${parts[@]}"; do rm -rf "${work:?}"/*; "$part"; done
echo "$passed checks passed, $failed failed"
if ((failed > 0)); then exit 1; fi
if [[ $stalled ]]; then exit 77; fi
