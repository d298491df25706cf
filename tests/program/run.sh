#!/usr/bin/env bash
# The program llmbench: each verb, its help, what it refuses, and how it ends.
#   tests/program/run.sh LLMBENCH NO_DOCTEST [[without] PART...]     NO_DOCTEST is outcomes_no_doctest, which serves
# A part is a function below; none named means all of them, `without` all but these. Exits 77 where all is well but what the machine stalled.
set -euo pipefail
llmbench=$(realpath "${1:?usage: run.sh LLMBENCH NO_DOCTEST [PART...]}")
serves=$(realpath "$2")
tests=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
served=
trap 'kill $served 2> /dev/null || true; rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" NO_COLOR CLICOLOR_FORCE
export LC_ALL=C USER=anna
# shellcheck source=tests/support/checks.sh
source "$tests/support/checks.sh"
cd "$work"

# The simulated server in real time, in a process of its own.
port=$(python3 "$tests/support/free_ports.py" 1)
"$serves" serve "$port" > "$work/served.log" 2>&1 &
served=$!
wait_for_port "$port"
url=http://127.0.0.1:$port

# ends STATUS ARGUMENT...: so does llmbench
ends() {
    local command=("${@:2}")
    what="llmbench ${command[*]/#$work/...}"
    ended "$1" "$llmbench" "${@:2}"
}
# lines N: so many, as a refusal is one sentence
lines() { if (($(wc -l < "$log") == $1)); then ok; else wrong "it says $(wc -l < "$log") lines, not $1"; fi; }
# reported [DIRECTORY]: every file of a report is there, and the requests where they were measured
reported() {
    local file at=${1:-llmbench-report}
    [[ $at == llmbench-judged ]] || holds "the report has no records.jsonl" test -s "$at/records.jsonl"
    for file in result.json junit.xml summary.md report.html; do
        holds "the report has no $file" test -s "$at/$file"
    done
}
reported_again() { reported llmbench-judged; }
# report_says TEXT [FILE]
report_says() { holds "${2:-result.json} does not say: $1" grep -qF -- "$1" "llmbench-report/${2:-result.json}"; }

# ---- what it can do, and what is none of it
help() {
    local verb
    ends 2
    says "Usage: llmbench" "llmbench run --url http://127.0.0.1:8000 --users 8 --slo 'p90(ttft) <= 500 ms'"
    ends 0 --help
    for verb in $("$llmbench" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        ends 0 "$verb" --help
        says "Usage: llmbench $verb" "  llmbench $verb "
    done
    ends 0 --version
    says_like '^llmbench [0-9]+(\.[0-9]+){2}(-rc\.[0-9]+)?$'
    ends 2 run --help-me
    ends 2 runs
    says '"runs" is no verb: it must be one of run'
    lines 1
}

# ---- llmbench run: what it refuses, in one sentence with the option, its value and what is allowed
refusals() {
    local here=(run --url http://127.0.0.1:1)
    # refused SENTENCE ARGUMENT...
    refused() {
        ends 2 "${@:2}"
        says "$1"
        lines 1
        if [[ -e llmbench-report ]]; then wrong "it left a report"; else ok; fi
    }
    refused "llmbench: no server is named: give --url http://127.0.0.1:8000, or --command" run
    refused "--urls is no option of llmbench run, is --url meant?" run --urls http://127.0.0.1:1
    # Other tools' words get ours; a far guess is none.
    refused "--request-rate is no option of llmbench run, is --rate meant?" run --request-rate 8
    refused "--num-prompts is no option of llmbench run, is --requests meant?" run --num-prompts 8
    refused "--max-concurrency is no option of llmbench run, is --users meant?" run --max-concurrency 8
    refused "--rps is no option of llmbench run, is --rate meant?" run --rps 8
    refused "--input-len is no option of llmbench run, is --prompt-tokens meant?" run --input-len 8
    refused "--xyz is no option of llmbench run: " run --xyz 8
    LLMBENCH_HISTORY_DRI=h refused "LLMBENCH_HISTORY_DRI is set and is no variable of llmbench: is LLMBENCH_HISTORY_DIR meant?" \
        history --page history.html
    refused '"b" belongs to no option: put quotes around' "${here[@]}" --name a b
    refused "--users takes one value, once" "${here[@]}" --users
    refused "--users takes one value, once" "${here[@]}" --users 8 --users 9
    refused '--users is "0": it must be a whole number from 1 to 1000000, or up_to(N)' "${here[@]}" --users 0
    refused '--arrivals is "poison(8rps)": it must be poisson(RATE), constant(RATE)' "${here[@]}" --arrivals 'poison(8rps)'
    refused '--think is "uniform(1s)": it must be a time, uniform(LOW, HIGH)' "${here[@]}" --think 'uniform(1s)'
    refused "--prompt-tokens needs made-up prompts" "${here[@]}" --dataset a.json --prompt-tokens 8
    refused '--warmup is "some": it must be a number of requests, a time or until_stable(TIME)' "${here[@]}" --warmup some
    refused '--api is "openai": it must be one of openai_chat' "${here[@]}" --api openai
    refused '--time-budget is "soon": it must be a time above zero' "${here[@]}" --time-budget soon
    refused '--slo: the SLO "p90(ttft) <= 500" cannot be read from character 17 on' "${here[@]}" --slo 'p90(ttft) <= 500'
    refused "--url and --command are both given" "${here[@]}" --command true
    # What a gate itself is refused for is in its reports, too.
    ends 2 "${here[@]}" --rate 8 --slo 'output_throughput >= 400 tok/s'
    says "llmbench run: refused" "below saturation a throughput only measures the arrival rate"
    report_says "below saturation a throughput" junit.xml
    ends 3 "${here[@]}"
    says "llmbench run: invalid" "no server answers at http://127.0.0.1:1"
    LLMBENCH_SKIP_WITHOUT_SERVER=1 ends 77 "${here[@]}"
    rm -r llmbench-report
}

# ---- llmbench run: a gate
gates() {
    local small=(--prompt-tokens 16 --output-tokens 8 --warmup 2 --requests 40)
    ends 0 run --url "$url" --users 8 "${small[@]}" --slo 'p90(ttft) <= 5 s' --slo 'mean(tpot) <= 1 s'
    says_like 'PASS +p90\(ttft\) <= 5 s' 
    says "8 users" "report: llmbench-report/report.html"
    reported
    report_says '"name": "llmbench run"'
    ends 1 run --url "$url" --rate 40 "${small[@]}" --slo 'mean(tpot) <= 0.5 ms' --name "too slow" --report other
    says_like 'FAIL +mean\(tpot\) <= 0.5 ms'
    reported other
    if grep -q 'file="llmbench run"\|:0"' other/junit.xml; then wrong "junit.xml has a place that there is not"; else ok; fi
    LLMBENCH_URL=$url ends 0 run --arrivals 'constant(40rps)' "${small[@]}" --slo 'advisory(mean(tpot) <= 0.5 ms)'
    ends 77 run --url "$url" --users 4 "${small[@]}" --slo 'error_rate <= 0.5 %' --inconclusive skip
    printf 'How are you?\nAnd you?\n' > lines.txt
    ends 0 run --url "$url" --users 4 --dataset lines.txt --format text_lines --max-tokens 8 --warmup 2 --requests 20 \
        --api openai_completions
    says "2 prompts of lines.txt (text_lines)"
    report_says '"api": "openai_completions"'
    printf '{"timestamp": 0, "input_length": 9, "output_length": 5, "hash_ids": []}\n%.0s' {1..20} > trace.jsonl
    ends 0 run --url "$url" --arrivals 'replay(trace.jsonl)' --warmup 0
    says "trace.jsonl"
    ends 0 run --url "$url" --turns 3 --users 2 --prompt-tokens 16 --output-tokens 8 --requests 30
    ends 0 run --url "$url" --users 4 --prompt "Say yes." --max-tokens 5 --requests 20 --no-stream --slo 'p50(e2e) <= 5 s'
    ends 0 run --command "exec $serves serve {port}" --ready /health "${small[@]}" --users 4 --slo 'p50(ttft) <= 5 s'
    says "process at http://127.0.0.1:" "PASS"
    ends 0 run --url "$url" --users 'up_to(3)' --prompt-tokens 16 --output-tokens 4 --requests 40 --slo 'p90(ttft) <= 5 s'
    says_like "capacity|users"
}

# ---- llmbench run --config, explain: five gates of a file
five_gates() {
    cp "$tests/data/arithmetic.jsonl" "$tests/data/sessions/weka.ours.jsonl" .
    cat > gates.toml << 'END'
prompt-tokens = 16
output-tokens = 8
requests = 40
warmup = 2

[chat]
rate = 40
slo = [
    "p90(ttft) <= 5 s",
    "mean(tpot) <= 0.5 ms",
]
[right]
questions = "arithmetic.jsonl"
format = "gsm8k"
max-items = 50
max-tokens = 512
users = 16
slo = "accuracy >= 50 %"
["agents' sessions"]
sessions = "weka.ours.jsonl"
max-wait = "100ms"
users = 4
slo = "p50(ttft) <= 5 s"
[mixed]
rate = 40
requests = 80
slo = 'p50(ttft).of("long") <= 5 s'
[[mixed.part]]
name = "short"
prompt-tokens = 8
[[mixed.part]]
name = "long"
prompt-tokens = 64
[[mixed.task]]
name = "tick"
every = "500ms"
steps = [{command = "true"}]
[saturated]
users = 8
cost = 2.5
duration = "2s"
slo = "cost_per_million_tokens <= 100 usd"
END
    export LLMBENCH_URL=$url
    ends 1 run --config gates.toml
    says_like '^5 gates: 1 failed, [34] passed|^5 gates: 1 failed, 1 inconclusive, 3 passed'
    says "chat: failed" "right: passed" "agents' sessions: passed" "mixed: passed" "report: llmbench-report/report.html"
    reported
    report_says 'gates.toml' junit.xml
    python3 - << 'END' || wrong "result.json has other gates"
import json
gates = json.load(open("llmbench-report/result.json"))["gates"]
assert [g["name"] for g in gates] == ["chat", "right", "agents' sessions", "mixed", "saturated"]
assert [(g["file"], g["line"]) for g in gates][:2] == [("gates.toml", 6), ("gates.toml", 12)], gates[0]["line"]
assert [s["line"] for s in gates[0]["slos"]][:2] == [9, 10], gates[0]["slos"]
END
    ends 0 run --config gates.toml --gate right --report one
    says_not "chat:"
    ends 2 run --config gates.toml --gate rihgt
    says '--gate is "rihgt": it must be a gate of gates.toml: chat, right, agents'"' sessions, mixed and saturated"
    # Without a server, and without a trace.
    unset LLMBENCH_URL
    rm -rf llmbench-report one
    ends 0 explain gates.toml
    says "chat  (gates.toml:6)" "  takes       2 to 5 repeats (8 " "mean(tpot) <= 0.5 ms  " "no model of side task tick" \
        "    - wrong answers: their speed and errors are judged" "5 gates, about " "Nothing was sent"
    ends 0 explain gates.toml --json --gate chat --gate right
    python3 - "$log" << 'END' || wrong "it is no such JSON"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["schema"] == "llmbench/explain/1" and [g["name"] for g in j["gates"]] == ["chat", "right"]
chat = j["gates"][0]
assert chat["accepted"] and 0 < chat["least_seconds"] <= chat["most_seconds"]
o = chat["objectives"][0]
assert o["slo"] == "p90(ttft) <= 5 s" and o["fails_from"] > o["limit"] == 5 and not o["advisory"]
assert {"tail", "answers"} <= {b["id"] for b in chat["cannot_see"]}
END
    ends 0 explain gates.toml --gate chat --budget 10min
    says "  in 10 min, of any statistic, whose repeats spread by 3 % (assumed)" "a fixed limit" "once, " "a second GPU"
    ends 2 explain gates.toml --budget 0s
    says '--budget is "0s": it must be a time above 0, such as 10min'
    ends 2 explain gates.toml --calibration calibration.json
    says "--calibration is of --budget"
    ends 2 explain gates.toml --budget 10min --calibration gates.toml
    says "gates.toml is not a calibration"
    sed -n '/^  gates.toml: |/,/^---/s/^    //p' "$tests/../ci/promotion/argo-rollouts.yaml" > canary.toml
    ends 0 explain canary.toml
    says "mean(tpot) <= 1.1 * baseline"
    if [[ -e llmbench-report || -e llmbench-rehearsal ]]; then wrong "explain leaves a report"; else ok; fi
    GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$work/step ends 0 explain gates.toml --gate chat
    if [[ -e $work/step ]]; then wrong "explain writes the summary of a step"; else ok; fi
    # All refusals at once, before anything is sent; and each of them by explain, too.
    sed -e 's/^rate = 40$/rte = 40/' -e '/^slo = "accuracy/d' gates.toml > bad.toml
    for verb in run explain; do
        if [[ $verb == run ]]; then ends 2 run --config bad.toml --url "$url"; else ends 2 explain bad.toml; fi
        says "llmbench: bad.toml:7: [chat] rte is no key of a gate, is rate meant?" "llmbench: bad.toml:12: [right] has no slo" \
            "bad.toml:24: [mixed] rte is no key"
        lines 3
    done
    ends 2 run --config gates.toml --users 8 --url "$url"
    says "gates.toml:17: [right] users is here, and --users on the command line: one of the two must go"
    ends 2 run --config nowhere.toml
    says "the file of gates: nowhere.toml cannot be read"
    ends 2 run --gate chat --url "$url"
    says "--gate needs --config"
    ends 2 explain
    says "one file of gates is needed"
    # What could not be printed is said.
    local verb
    for verb in "explain gates.toml" "explain gates.toml --json" "--help" "run --help" "convert sessions.jsonl --from weka"; do
        cp "$tests/data/sessions/weka.jsonl" sessions.jsonl
        what="llmbench $verb > /dev/full"
        # shellcheck disable=SC2086  # words
        ended 3 bash -c '"$@" > /dev/full' - "$llmbench" $verb
        says "standard output could not be written, so it is not whole"
    done
    sed -i '1i time-budget = "soon"' gates.toml
    ends 2 run --config gates.toml --url "$url"
    says 'gates.toml: time-budget is "soon": it must be a time above zero'
    lines 1
    if [[ -e llmbench-report ]]; then wrong "a refusal left a report"; else ok; fi
}

# ---- what no load can be sent for is refused by run and by explain, in the same words, before anything is sent
refused_by_both() {
    local before sound=$'[first]\nrequests = 30\nwarmup = 0\nslo = "p90(ttft) <= 9 s"'
    page() { python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())' "$url/metrics" | md5sum; }
    # both SENTENCE LINE...: the second gate of a file has these keys
    both() {
        printf '%s\n' "url = \"$url\"" "$sound" '[second]' "${@:2}" 'slo = "p90(ttft) <= 9 s"' > two.toml
        before=$(page)
        ends 2 run --config two.toml
        says "$1"
        lines 1
        grep -v '^$' "$log" > by_run
        ends 2 explain two.toml
        if diff by_run <(grep -v '^$' "$log") > /dev/null; then ok; else wrong "explain says something else than run"; fi
        if [[ $before == "$(page)" ]]; then ok; else wrong "run sent the first gate"; fi
    }
    both 'endpoint.url is "file:///srv"' 'url = "file:///srv"'
    both 'the port must be a number' 'url = "http://127.0.0.1:none"'
    both 'endpoint.tls.ca_file' 'url = "https://127.0.0.1:1"' 'ca-file = "nowhere.pem"'
    both 'endpoint.path is "chat": it must begin with a slash' 'path = "chat"'
    both 'endpoint.headers sets Host' 'header = "Host: x"'
    both 'LLMBENCH_NO_SUCH_KEY": that variable is not set' 'key-variable = "LLMBENCH_NO_SUCH_KEY"'
    both 'endpoint.url is "ftp://127.0.0.1:1"' 'baseline-url = "ftp://127.0.0.1:1"'
    both 'nowhere.jsonl' 'dataset = "nowhere.jsonl"'
    both 'process.command "serve" has no {port}' 'command = "serve"'
    sound="report = \"/proc/llmbench\"
$sound" both 'the report directory is /proc/llmbench: it cannot be written' 'users = 2'
    ends 2 run --url "$url" --report /proc/llmbench
    says "name another one by LLMBENCH_REPORT_DIR or --report"
    holds "a check of the report's folder left one" test ! -e /proc/llmbench
    # The file of a baseline is asked for by who sends a load: a model has its own.
    printf '%s\n' "url = \"$url\"" "[first]" 'requests = 30' 'slo = "p90(ttft) <= 9 s"' '[second]' \
        'baseline-file = "nowhere.json"' 'slo = "p90(ttft) <= 9 * baseline"' > two.toml
    ends 0 explain two.toml
    ends 2 run --config two.toml
    says 'two.toml:5: [second] baseline is stored("nowhere.json")'
    lines 1
    # A sweep checks each of its gates before the first one.
    before=$(page)
    ends 2 run --url "$url" --requests 30 --warmup 0 --sweep 'path=/v1/chat/completions,chat' --slo 'p90(ttft) <= 9 s'
    says 'endpoint.path is "chat"'
    if [[ $before == "$(page)" ]]; then ok; else wrong "the sweep sent its first gate"; fi
    # No line of a file's name is a command of a runner, which skips blanks before the colons.
    ends 2 run --config $'nope\n::error::a'
    ends 2 run --config $'nope\n  ::error::b\e[31m'
    says "| " '::error::b?[31m'
    if grep -qE '^[[:space:]]*::' "$log"; then wrong "a line of it is a command"; else ok; fi
    # What a model of a server lacks is left out, and told.
    printf '%s\n' '[a]' 'slo = ["max(server_metric(\"x\")) <= 5", "p90(ttft) <= 9 s"]' > lacks.toml
    ends 0 explain lacks.toml
    says "no model of" 'server_metric("x")'
    printf '%s\n' '[a]' 'slo = "max(server_metric(\"x\")) <= 5"' > lacks.toml
    ends 0 explain lacks.toml
    says "no model of" 'server_metric("x")'
}

# ---- the files of gates that pages show are accepted, and the mistakes that they name are refused
files_of_pages() {
    local page
    for page in program for_agents; do
        # shellcheck disable=SC2016  # the backticks are Markdown's
        sed -n '/^```toml$/,/^```$/p' "$tests/../guides/$page.md" | grep -v '^```' > "$page.toml"
        holds "guides/$page.md shows no file of gates" test -s "$page.toml"
        cp "$tests/data/arithmetic.jsonl" gsm8k.jsonl
        ends 0 explain "$page.toml"
    done
    cp "$tests/../examples/python/gates.toml" of_python.toml
    ends 0 explain of_python.toml
    # mistake TEXT LINE...: guides/for_agents.md, "Ten mistakes"
    mistake() {
        printf '%s\n' '[a]' "${@:2}" > mistake.toml
        ends 2 explain mistake.toml
        says "$1"
        lines 1
    }
    mistake "at least 300" 'requests = 100' 'slo = "p99(ttft) <= 800 ms"'
    mistake "below saturation" 'rate = 8' 'slo = "output_throughput >= 400 tok/s"'
    mistake "p90(ttft) meant" 'slo = "ttft <= 300 ms"'
    mistake '"<=" is expected' 'slo = "mean(tpot) >= 25 ms"'
    mistake "is expected" 'slo = "p90(ttft) <= 300"'
    mistake "options.max_tokens is 64" 'max-tokens = 64' 'slo = "p90(ttft) <= 300 ms"'
    mistake "baseline" 'slo = "p90(ttft) <= 1.1 * baseline"'
    mistake "has no slo" 'rate = 8'
}

# ---- an advisory objective that the newest ten runs of main met asks to block again
waivers() {
    local ask=(run --url "$url" --rate 40 --requests 60 --warmup 2 --prompt-tokens 16 --output-tokens 8 --name waived
        --slo 'mean(tpot) <= 2 * baseline' --slo 'advisory(p90(ttft) <= 5 s)' --baseline-history perf-history)
    export LLMBENCH_MACHINE=this
    LLMBENCH_HISTORY=append ends 0 "${ask[@]}" --inconclusive warn
    python3 - << 'END' || wrong "the history cannot be written again"
import datetime, glob, json
file, = glob.glob("perf-history/*/*/*.jsonl")
lines = [json.loads(l) for l in open(file)]
run, = [l for l in lines if "values" in l]
today = datetime.datetime.fromisoformat(run["at"].replace("Z", "+00:00"))
with open(file, "a") as f:
    for day in range(12, 0, -1):
        then = (today - datetime.timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")
        f.write(json.dumps({**run, "id": f"{run['id']}-{day}", "at": then}) + "\n")
END
    ends 0 "${ask[@]}"
    report_says 'met in 10 of 10 runs: it can block again' summary.md
    unset LLMBENCH_MACHINE
}

# ---- llmbench run --sweep: a gate for each value, one table, and plots
sweeps() {
    local small=(--users 2 --requests 30 --warmup 2 --output-tokens 8)
    ends 0 run --url "$url" "${small[@]}" --sweep prompt-tokens=16,64,256 --slo 'p50(ttft) <= 5 s'
    says "llmbench run, prompt-tokens 64: passed" "prompt-tokens" "ttft p90"
    says_like '^ *256 +[0-9.]+ ms +[0-9.]+ ms'
    reported
    report_says "### By prompt-tokens" summary.md
    report_says "<h2>By prompt-tokens</h2>" report.html
    report_says '"name": "llmbench run, prompt-tokens 256"'
    holds "the page has not both plots" test "$(grep -o '<span>over prompt-tokens</span>' llmbench-report/report.html | wc -l)" = 2
    ends 1 run --url "$url" "${small[@]}" --sweep 'prompt-tokens=16, uniform(8, 32)' --slo 'p50(ttft) <= 1 us'
    says "prompt-tokens uniform(8, 32): failed"
    local bad
    for bad in prompt-tokens prompt-tokens=8 prompt=8,9 nothing=1,2 prompt-tokens=8,,9 name=a,b; do
        ends 2 run --url "$url" --sweep "$bad"
        says "--sweep is \"$bad\": it must be an option of a gate with 2 to 16 values"
        lines 1
    done
    ends 2 run --url "$url" --users 2 --sweep users=1,2
    says "--users is given, and --sweep has values of it"
    ends 2 run --url "$url" --sweep users=1,none
    says '--users is "none"'
}

# ---- a baseline named by its URL is asked exactly what the target is asked
same_requests() {
    local a b recorder option values=() pages=("$("$llmbench" run --help)") told
    a=$(python3 "$tests/support/free_ports.py" 1)
    b=$(python3 "$tests/support/free_ports.py" 1)
    python3 "$tests/support/recorder.py" "$a" "$b" &
    recorder=$!
    served="$served $recorder"
    wait_for_port "$a"
    wait_for_port "$b"
    printf 'How are you?\nAnd you?\n' > lines.txt
    export KEY_OF_BOTH=sk-of-both
    local -A with=(
        [--model]=other [--api]=openai_completions [--path]=/v9/ask [--key-variable]=KEY_OF_BOTH
        [--header]='X-Tenant: blue' [--metrics-url]=/page [--ready-within]=1s [--insecure]=""
        [--prompt-tokens]=32 [--output-tokens]=6 [--own-length]="" [--prefix-tokens]=8
        [--prefix-groups]='2 --prefix-tokens 8' [--prefix-share]='50% --prefix-tokens 8'
        [--dataset]='lines.txt --format text_lines' [--format]='text_lines --dataset lines.txt'
        [--unsalted]='--dataset lines.txt --format text_lines' [--prompt]=yes [--turns]=2
        [--max-tokens]='5 --prompt yes' [--temperature]=0.5 [--system-prompt]=short [--extra-body]='{"top_k":3}'
        [--no-stream]="" [--continuous-usage]="" [--server-history]='--api openai_responses --turns 2' [--websocket]='--api openai_responses'
        [--questions]='lines.jsonl' [--grade]='exact --questions lines.jsonl'
        [--before]='Say: --questions lines.jsonl' [--after]='! --questions lines.jsonl' [--sessions]=sessions.jsonl
        [--max-wait]='1s --sessions sessions.jsonl' [--max-context]='900 --sessions sessions.jsonl'
        [--max-items]='10 --questions lines.jsonl' [--session-model]='m=b --sessions sessions.jsonl'
        [--min-prompt-tokens]='1 --dataset shares.json' [--max-prompt-tokens]='900 --dataset shares.json'
        [--min-output-tokens]='1 --dataset shares.json' [--max-output-tokens]='900 --dataset shares.json'
        [--images]='. --dataset shares.json' [--turn-pause]='1ms --turns 2' [--own-prefix]='--turns 2 --prefix-tokens 8'
        [--subagents]='50% --turns 2 --helpers 1 --helper-turns 1' [--helpers]='1 --turns 2 --subagents 50% --helper-turns 1'
        [--helper-turns]='1 --turns 2 --subagents 50% --helpers 1' [--ignore-eos]='--prompt yes --max-tokens 5'
        [--max-tokens-field]='max_completion_tokens --prompt yes --max-tokens 5' [--no-usage]="" [--events-are-tokens]="")
    printf '[%s{"conversations": [{"from": "human", "value": "one"}, {"from": "gpt", "value": "a b c"}]}]' \
        "$(printf '{"conversations": [{"from": "human", "value": "%s is a number"}, {"from": "gpt", "value": "a b c"}]},' {1..12})" > shares.json
    printf '{"question": "%s", "answer": "yes"}\n' {1..12} > lines.jsonl
    printf '{"session":"%s","step":"a","prompt_tokens":9,"output_tokens":4,"model":"m"}\n' {1..12} > sessions.jsonl
    # What names a server, or is of one that is started, or the target's alone; test_run_options.cpp has files of TLS. No gate
    # has only requests that are cancelled, and documents are of APIs that generate nothing.
    local apart=" --url --command --ready --env --directory --ca-file --cert --key --restart --cold --telemetry-url --cancel-after --documents "
    while IFS= read -r option; do
        [[ $apart == *" $option "* ]] && continue
        what="--baseline-url and $option"
        if [[ ! -v with[$option] ]]; then
            wrong "the test has no value for it, and does not know whether both servers are asked alike"
            continue
        fi
        values=()
        case $option in
            --header | --extra-body) values=("${with[$option]}") ;;
            *) read -ra values <<< "${with[$option]}" ;;
        esac
        rm -f asked-*
        "$llmbench" run --url "http://127.0.0.1:$a" --baseline-url "http://127.0.0.1:$b" --users 1 --requests 10 \
            --warmup 0 --repeats 4 --slo 'mean(e2e) <= 9 * baseline' "$option" "${values[@]}" > "$log" 2>&1 || true
        for told in "$a" "$b"; do sort -u "asked-$told" > "once-$told" || true; done
        holds "one of the two is not asked" test -s "once-$a" -a -s "once-$b"
        holds "POST is missing" grep -q '"POST"' "once-$b"
        if diff "once-$a" "once-$b" > "$log"; then ok; else wrong "they are not asked alike"; fi
    done < <(sed -n '/^\(Server\|What is sent\|Fields of every request\):/,/^$/p' <<< "${pages[0]}" | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
    kill "$recorder"
}

# ---- the command that is printed does the same again, and repeats no secret
run_again() {
    local again
    # repeats STATUS PAGE: the last line's command, as a shell reads it
    repeats() {
        again=$(sed -n 's/^report: .*; run again: //p' "$log")
        holds "$2 has another command" python3 -c 'import html, sys
assert sys.argv[1] in html.unescape(open(sys.argv[2], encoding="utf-8").read())' "$again" "$2"
        what="again: $again"
        ended "$1" bash -c "$again"
    }
    ends 1 run --url "$url" --users 4 --prompt-tokens 16 --output-tokens 8 --warmup 2 --requests 40 --name "it's slow" \
        --slo 'mean(tpot) <= 0.2 ms' --header 'X-Api-Key: sk-pl4nted-1' --header 'X-Gateway: pl4nted-22' \
        --extra-body '{"user_token":"pl4nted-333"}'
    says "run again: $llmbench run --url $url" "--slo 'mean(tpot) <= 0.2 ms'" "--name 'it'\\''s slow'" \
        "--header 'X-Api-Key: ***' --header 'X-Gateway: ***' --extra-body '{\"user_token\":\"***\"}'"
    says_not pl4nted
    if grep -rq pl4nted llmbench-report; then wrong "a secret is in the report"; else ok; fi
    repeats 1 llmbench-report/report.html
    ends 1 judge llmbench-report --slo 'mean(tpot) <= 0.2 ms'
    says "run again: $llmbench judge llmbench-report --slo 'mean(tpot) <= 0.2 ms'"
    repeats 1 llmbench-judged/report.html
    # Nor does a refusal.
    ends 2 run --url "$url" --header 'Authorization Bearer sk-pl4nted-1'
    says "--header has no colon behind a name"
    says_not pl4nted
    ends 2 run --command true --env 'HF_TOKEN pl4nted-22'
    says "--env has no = behind a name"
    says_not pl4nted
    ends 2 run --url "$url" --key-variable PL4NTED --report keyed
    says "it is not repeated here"
    says_not PL4NTED
    if grep -rq PL4NTED keyed; then wrong "a key in place of its variable is in the report"; else ok; fi
    ends 2 run --url "$url" --extra-body '{"api_key":"sk-pl4nted-1"'
    says_not pl4nted
    ends 3 run --command "exit 3; --api-key sk-pl4nted-1 {port}"
    says '"exit 3; --api-key *** {port}" exited with status 3'
    says_not pl4nted
}

# ---- llmbench judge, show: files of other tools
files_of_others() {
    local files=("$tests"/data/files/vllm-chat-ok-{1,2,3}.json)
    ends 0 judge --slo 'p50(ttft) <= 300 ms' --slo 'mean(tpot) <= 25 ms' "${files[@]}"
    says "result files: passed" "report: llmbench-judged/report.html"
    reported_again
    for file in report.html result.json summary.md; do
        holds "$file does not name the tool" grep -q 'vLLM bench serve' "llmbench-judged/$file"
    done
    ends 3 judge --slo 'p50(e2e) <= 1 s' "${files[@]}"
    ends 1 judge --slo 'mean(tpot) <= 10 ms' "${files[@]}" --report here
    holds "junit.xml has no failure" grep -q '<failure' here/junit.xml
    ends 3 judge --slo 'p50(ttft) <= 300 ms' "${files[0]}" "${files[0]}"
    says "are the same, byte for byte"
    ends 2 judge --slo 'p50(tft) <= 300 ms' "${files[@]}"
    says "--slo: the SLO"
    lines 1
    ends 2 judge --slo 'p50(ttft) <= 300 ms' /nowhere.json
    says "result files: refused" "/nowhere.json cannot be read as a file"
    ends 2 judge "${files[@]}"
    says "--slo is needed: files of other tools have no objectives of their own"
    ends 2 judge nothing
    says "nothing: there is no such file or directory"
    lines 1
    ends 2 judge --slo 'p50(ttft) <= 300 ms' --gate a "${files[@]}"
    says "--gate and --against are of llmbench's own runs"
    ends 2 judge
    says "no file is named"
    rm -rf llmbench-judged
    ends 0 show "${files[@]}"
    says "vLLM bench serve" "ttft" "p90"
    if [[ -e llmbench-judged || -e llmbench-report ]]; then wrong "show leaves a report"; else ok; fi
    ends 2 show --as vllm "${files[0]}"
    says "--as is of llmbench's own runs"
}

# ---- the same of runs of our own
own_runs() {
    local small=(--prompt-tokens 16 --output-tokens 8 --warmup 2 --requests 60)
    ends 1 run --url "$url" --users 4 "${small[@]}" --slo 'p90(ttft) <= 5 s' --slo 'mean(tpot) <= 0.2 ms'
    grep -E '^  +(PASS|FAIL|OBSERVED|INCONCLUSIVE)' "$log" > verdicts
    ends 1 judge llmbench-report
    if grep -E '^  +(PASS|FAIL|OBSERVED|INCONCLUSIVE)' "$log" | cmp -s - verdicts; then ok
    else wrong "the verdicts are not those of the run"; fi
    reported_again
    ends 0 judge llmbench-report/result.json --slo 'mean(tpot) <= 1 s'
    says_like 'PASS +mean\(tpot\) <= 1 s'
    ends 1 judge llmbench-report/result.json --slo 'mean(tpot) <= 0.5 ms'
    says_like 'FAIL +mean\(tpot\) <= 0.5 ms'
    holds "junit.xml has no failure" grep -q '<failure' llmbench-judged/junit.xml
    ends 1 judge llmbench-report/records.jsonl --slo 'mean(tpot) <= 0.5 ms' --name again
    says "again: failed"
    ends 2 judge llmbench-report --gate other
    says 'has no gate "other": it has "llmbench run"'
    ends 2 judge llmbench-report --report llmbench-report
    says "where the new report would go"
    ends 2 judge llmbench-report llmbench-judged
    says "one run of llmbench is judged at a time"
    ends 2 judge llmbench-report --slo 'output_throughput >= 4 rps'
    ends 2 judge nowhere --slo 'p50(ttft) <= 1 s'
    ends 0 show llmbench-report
    says "llmbench run: failed" "ttft_from_send"
    ends 0 show llmbench-report --as vllm,aiperf
    says "as vLLM bench serve has it" "as AIPerf has it" "TPOT"
    ends 2 show llmbench-report --as locust
    says '--as is "locust": "locust" is none of vllm, sglang, guidellm, aiperf'
    ends 2 show
    says "no file is named"
    mkdir alone
    cp llmbench-report/result.json alone
    ends 0 show alone/result.json
    says "llmbench run: failed" "p90(ttft) <= 5 s"
    # Where the file has no value of it, none is told: it may be infinite.
    mkdir valueless
    sed -E 's/"measured": [^,]*,/"measured": null,/' alone/result.json > valueless/result.json
    ends 0 show valueless
    says "p90(ttft) <= 5 s"
    says_not "none"
    ends 2 show alone --as vllm
    says "--as needs the times of the requests"
    # Every report again, from result.json and records.jsonl: byte for byte the run's.
    same_again() {
        holds "the page made again is another" cmp "$1/report.html" again.html
        holds "the summary made again is another" cmp "$1/summary.md" again.md
        holds "junit.xml made again is another" cmp "$1/junit.xml" again.xml
        holds "the metrics made again are others" cmp "$1/metrics.txt" again.txt
    }
    local again=(--page again.html --summary again.md --junit again.xml --metrics again.txt)
    ends 0 show llmbench-report "${again[@]}"
    same_again llmbench-report
    # One that was refused, and one that is paired.
    ends 2 run --url "$url" --baseline-url "$url" --users 4 "${small[@]}" --slo 'p50(e2e) <= 2 * baseline' --report refused
    ends 0 show refused "${again[@]}"
    same_again refused
    local second
    second=$(python3 "$tests/support/free_ports.py" 1)
    "$serves" serve "$second" > "$work/second.log" 2>&1 &
    served+=" $!"
    wait_for_port "$second"
    "$llmbench" run --url "$url" --baseline-url "http://127.0.0.1:$second" --rate 20 "${small[@]}" --report paired \
        --slo 'p50(e2e) <= 2 * baseline' --slo 'goodput(ttft <= 1 s) >= 90 %' --slo 'error_rate <= 1 %' > "$log" 2>&1 || true
    ends 0 show paired "${again[@]}"
    same_again paired
    ends 2 show llmbench-report --page llmbench-report/report.html
    says "must be outside"
    ends 2 show alone "${again[@]}"
    says "records.jsonl"
    ends 2 show llmbench-report llmbench-report --summary again.md
    says "are of one run: 2 are named"
    # Two runs as tables: both are named, with ratios; compare leads there.
    ends 0 show alone llmbench-report
    says "A: alone" "B: llmbench-report" "B / A" "p90(ttft)" "no ratio here is a verdict"
    ends 2 compare alone llmbench-report
    says "llmbench show A B"
    # Two runs on one page: both curves, or why there is none; nothing of the runs is written to.
    ends 0 show llmbench-report llmbench-report --page pair.html
    says "pair.html"
    page_says() { holds "pair.html does not say: $1" grep -qF -- "$1" pair.html; }
    page_says "Server: no difference."
    page_says '"A"],['
    page_says '"B"],['
    ends 0 show alone llmbench-report --page pair.html --gate "llmbench run"
    page_says "A has no curve: alone/records.jsonl is not there."
    # not_shown SENTENCE ARGUMENT...
    not_shown() {
        rm -f pair.html
        ends 2 show "${@:2}" --page pair.html
        says "$1"
        lines 1
        if [[ -e pair.html ]]; then wrong "it left a page"; else ok; fi
    }
    mkdir -p none later
    sed 's|llmbench/result/2|llmbench/result/3|' llmbench-report/result.json > later/result.json
    not_shown "--page is of one run or of two side by side, as" llmbench-report alone alone
    not_shown "3 are named" llmbench-report alone alone
    not_shown "none/result.json cannot be read: No such file" llmbench-report none
    not_shown "later/result.json is not a result of this schema (llmbench/result/2)" llmbench-report later
    not_shown "has no measured gate \"other\": it has \"llmbench run\"" alone llmbench-report --gate other
    not_shown "--as and --page are both given" alone llmbench-report --as vllm
    not_shown "--page needs two runs of llmbench: nowhere is none" alone nowhere
    ends 2 show alone llmbench-report --page alone/result.json
    says "--page is alone/result.json: it must be outside alone, whose files are read"
    # A time budget may end before the first pair: there is a baseline, and nothing to judge.
    mkdir unpaired
    python3 - <<'END'
import json
run = json.load(open("llmbench-report/result.json"))
run["gates"][0]["judging"]["paired"] = True
run["gates"][0]["candidate"]["repeats"] = []
json.dump(run, open("unpaired/result.json", "w"))
END
    cp llmbench-report/records.jsonl unpaired
    ends 3 judge unpaired --slo 'p50(ttft) <= 1.1 * baseline'
    # Not a shard of a load, and parts that are.
    ends 2 merge llmbench-report
    says "was measured as a whole"
    ends 2 merge
    says "no directory is named"
    local at i
    at=$(($(date +%s) + 3))
    for i in 0 1; do
        LLMBENCH_SHARD=$i/2 LLMBENCH_START_AT=$at "$llmbench" run --url "$url" --rate 40 "${small[@]}" \
            --slo 'p90(ttft) <= 5 s' --report "shard-$i" > "shard-$i.log" 2>&1 &
        shards[i]=$!
    done
    for i in 0 1; do
        what="shard $i"
        pid=${shards[i]} log=$work/shard-$i.log
        waited 77
    done
    log=$work/log
    ends 2 judge shard-0
    says "llmbench merge\` puts the parts together"
    ends 0 merge shard-0 shard-1
    says_like 'PASS +p90\(ttft\) <= 5 s'
    reported_again
    ends 2 merge shard-0
    says "of 2 shards these are missing: 1"
}
shards=()

# ---- files that are read, and those of others, outlive every report
nothing_is_lost() {
    local others=$tests/data/files ask=(--slo 'p50(ttft) <= 300 ms') small=(--prompt-tokens 16 --output-tokens 8 --warmup 2)
    files_here() { find . -name 'log*' -prune -o -type f -exec sha256sum {} + | sort; }
    # refused SENTENCE ARGUMENT...: and every file here is as it was
    refused() {
        local before
        before=$(files_here)
        ends 2 "${@:2}"
        says "$1"
        if [[ $(files_here) == "$before" ]]; then ok; else wrong "files are changed or lost"; fi
    }
    mkdir mine
    cp "$others/vllm-chat-ok-1.json" mine/result.json
    cp "$others/vllm-chat-ok-2.json" b.json
    ln -s mine link
    local way
    for way in mine ./mine mine/../mine link "$work/mine"; do
        refused "where the new report would go" judge mine/result.json b.json --report "$way" "${ask[@]}"
        refused "where the new report would go" judge link/result.json b.json --report "$way" "${ask[@]}"
        refused "its result.json is not one of llmbench" judge b.json --report "$way" "${ask[@]}"
        refused "its result.json is not one of llmbench" run --url "$url" "${small[@]}" --report "$way"
    done
    echo "<testsuites name='of others'/>" > mine/junit.xml
    rm mine/result.json
    refused "its junit.xml is not one of llmbench" judge b.json --report mine "${ask[@]}"
    ends 0 run --url "$url" --users 4 "${small[@]}" --requests 40 --report own
    ln -s own link-to-own
    for way in own link-to-own own/../own; do
        refused "where the new report would go" judge own --report "$way"
        refused "where the new report would go" judge own/records.jsonl --report "$way"
        refused "where the new report would go" merge own own --report "$way" "${ask[@]}"
        refused "where the new report would go" run --url "$url" --baseline-file own/result.json --report "$way"
    done
    # What cannot be read leaves the old reports neither green nor in the place of new ones.
    ends 0 judge own --report judged
    ends 2 judge b.json /nowhere.json "${ask[@]}" --report judged
    holds "junit.xml is still green" grep -q "/nowhere.json cannot be read" judged/junit.xml
    cp "$tests/data/sessions/weka.jsonl" lines.jsonl
    refused "--out is ./lines.jsonl, which is read" convert lines.jsonl --from weka --out ./lines.jsonl
    # A pipe, a device and a folder are no file, and none is waited for without an end.
    mkfifo pipe
    ends 2 judge pipe b.json "${ask[@]}"
    says "pipe cannot be read as a file"
    refused "pipe cannot be read as a file" show pipe
    refused "pipe is a pipe, and nothing was written to it for 10 s" convert pipe --from weka
    refused "the file cannot be read: it is a device" convert /dev/zero --from weka
    refused "/dev/zero cannot be read as a file" show /dev/zero
    mkdir of-pipes
    mkfifo of-pipes/records.jsonl of-pipes/events.bin
    cp own/result.json of-pipes
    ends 2 judge of-pipes/records.jsonl
    says "records.jsonl cannot be read"
    cat "$tests/data/sessions/weka.jsonl" > pipe &
    ends 0 convert pipe --from weka --out sessions.jsonl
    holds "the lines are others" cmp -s sessions.jsonl "$tests/data/sessions/weka.ours.jsonl"
}

# ---- every gate of a run is judged, or refused by its name
no_gate_is_left_out() {
    local small=(--prompt-tokens 16 --output-tokens 8 --warmup 2 --requests 40) name
    ends 0 run --url "$url" --users 4 "${small[@]}" --slo 'p90(ttft) <= 5 s' --report own
    python3 - own several << 'END'
import copy, json, os, sys
os.mkdir(sys.argv[2])
run = json.load(open(sys.argv[1] + "/result.json"))
first = run["gates"][0]
bad = copy.deepcopy(first)
bad["name"] = "of an own metric"
bad["slos"][0]["slo"] = "p90(worst_gap) <= 1 s"
last = copy.deepcopy(first)
last["name"] = "the last"
run["gates"] += [bad, last]
lines = open(sys.argv[1] + "/records.jsonl").readlines()
del run["events"]
json.dump(run, open(sys.argv[2] + "/result.json", "w"))
with open(sys.argv[2] + "/records.jsonl", "w") as f:
    for g in run["gates"]:
        for l in lines: f.write(l.replace('"gate":"llmbench run"', '"gate":' + json.dumps(g["name"])))
END
    ends 2 judge several
    says "llmbench run: passed" "of an own metric: refused" "worst_gap" "the last: passed"
    for name in "llmbench run" "of an own metric" "the last"; do
        holds "junit.xml does not name $name" grep -q "\"$name\"" llmbench-judged/junit.xml
    done
    holds "result.json is green" grep -q '"exit_code": 2,' llmbench-judged/result.json
    # Two settings of one comparison, from the files.
    mkdir -p compared
    sed 's|"llmbench run"|"both / head"|; s|"the last"|"both / base"|' several/result.json > compared/result.json
    sed 's|"llmbench run"|"both / head"|; s|"the last"|"both / base"|' several/records.jsonl > compared/records.jsonl
    ends 0 judge compared --gate "both / head" --against "both / base" --slo 'mean(tpot) <= 3 * baseline'
    says "mean(tpot) <= 3 * baseline" "measured 1.000 x baseline"
    ends 2 judge compared --gate "both / head" --slo 'mean(tpot) <= 0.5 * baseline'
    says "the scenario has no baseline"
    ends 2 judge compared --gate "both / head" --against "both / b" --slo 'mean(tpot) <= 0.5 * baseline'
    says 'has no measured gate "both / b"'
    ends 2 judge compared --gate "both / head" --against "of an own metric" --slo 'mean(tpot) <= 0.5 * baseline'
    says '"both / head" and "of an own metric" are no two settings of one compare()'
    ends 2 judge compared --against "both / base"
    says "--against needs --gate"
    # What can be shown is.
    ends 0 show several
    says "llmbench run: passed" "of an own metric: " "ttft_from_send" "not shown: the SLO \"p90(worst_gap) <= 1 s\"" "the last: passed"
    mv several/records.jsonl several/records
    ends 0 show several
    says "of an own metric: " "p90(worst_gap) <= 1 s"
    mv several/records several/records.jsonl
    # A gate that a part of the load lacks is refused, too.
    ends 2 merge own several
    says "of an own metric: refused" "the last: refused"
}

# ---- llmbench convert
conversions() {
    local data=$tests/data/sessions format
    for format in weka bailian; do
        ends 0 convert "$data/$format.jsonl" --from "$format" --out sessions.jsonl
        holds "the lines are others" cmp -s sessions.jsonl "$data/$format.ours.jsonl"
    done
    says "sessions.jsonl: 4 sessions of 9 steps; left out: empty answers, which become one token (1 row), parents that"
    lines 1
    for format in mooncake_agents otel; do
        ends 0 convert "$data/$format.jsonl" --from "$format"
        says '"shared":true' '"step":"3"'
    done
    mkdir folder
    head -n 2 "$data/weka.jsonl" > folder/a.jsonl
    tail -n +3 "$data/weka.jsonl" > folder/b.jsonl
    ends 0 convert folder --from weka --out sessions.jsonl
    holds "the lines are others" cmp -s sessions.jsonl "$data/weka.ours.jsonl"
    rm sessions.jsonl
    sed '2s/"in":32/"in":-32/' "$data/weka.jsonl" > bad.jsonl
    ends 2 convert bad.jsonl --from weka --out sessions.jsonl
    says "llmbench: bad.jsonl:2: requests[].in is -32, a whole number from 1 to 10000000 is allowed"
    lines 1
    if [[ -e sessions.jsonl ]]; then wrong "it left a file"; else ok; fi
    ends 2 convert "$data/otel.jsonl" --from weka
    says "otel.jsonl:1: a session of Weka's has a list of requests"
    ends 2 convert "$data/otel.jsonl" --from otlp
    says '--from is "otlp": it must be weka, bailian, mooncake_agents or otel'
    ends 2 convert "$data/otel.jsonl"
    says "--from is needed: the format of the files is weka, bailian, mooncake_agents or otel"
    ends 2 convert --from weka
    says "no file is named"
    ends 2 convert nowhere.jsonl --from weka
    says 'FILE is "nowhere.jsonl": the file cannot be read'
    ends 2 convert "$data/weka.jsonl" --from weka --out no/where.jsonl
    says "cannot write no/where.jsonl"
    lines 1
}

# ---- what a load costs, and the gate that is written for it
counts() {
    local at engine
    at=$(python3 "$tests/support/free_ports.py" 1)
    "$llmbench" serve --slots 8 --decode-step 1ms --block-size 32 --port "$at" > engine.log 2>&1 &
    engine=$!
    wait_for_port "$at"
    ends 0 count --url "http://127.0.0.1:$at"
    says "24 requests (8 conversations of 3 turns, 4 users), sent twice, POST /reset_prefix_cache before each"
    says_like '^  server_requests +24 +24 +24 +equal, as expected$'
    says_like '^  prefilled_tokens +[0-9]+ +[0-9]+ +[0-9]+ +equal, as expected$'
    says_like '^  cached_tokens +[1-9][0-9]+ +[0-9]+ +[0-9]+ +equal, as expected$'
    says_like '^  generated_tokens +768 +768 +768 +equal, as expected$'
    says '.prepare = {post("/reset_prefix_cache")}' '"cached_tokens == expected"'
    if [[ -e llmbench-report ]]; then wrong "it left a report"; else ok; fi
    sed -n '/^\["the work of 24 requests"\]/,$p' "$log" > counted.toml
    ends 0 run --config counted.toml
    says "PASS" "cached_tokens == expected"
    ends 0 explain counted.toml
    says_like '^  cached_tokens == expected +the first number that misses it: counts have no noise$'
    ends 0 explain counted.toml --budget 10min
    says_not "a fixed limit"
    # What is given of the server is in the gate; another API has other prompts.
    ends 0 count --url "http://127.0.0.1:$at" --api openai_completions --metrics-url /metrics
    says '.target = endpoint{.api = openai_completions,' 'metrics-url = "/metrics"'
    sed -n '/^\["the work of 24 requests"\]/,$p' "$log" > completions.toml
    ends 0 run --config completions.toml
    # A secret of the command is not printed, but a variable is.
    CODE=known ends 0 count --prompt-tokens 16 \
        --command "PASSWORD=sesame OWN_KEY=\$CODE '$llmbench' serve --decode-step 1ms --port {port}"
    says "PASSWORD=*** OWN_KEY=\$CODE" "*** stands for a secret: put it back by an environment variable"
    says_not sesame
    # counted_behind EXIT_CODE PROMPT_TOKENS STATUS...: on that server, behind one that answers its resets so
    counted_behind() {
        local front
        front=$(python3 "$tests/support/free_ports.py" 1)
        python3 "$tests/program/resets.py" "$front" "http://127.0.0.1:$at" "${@:3}" > front.log 2>&1 &
        served+=" $!"
        wait_for_port "$front"
        ends "$1" count --users 1 --prompt-tokens "$2" --url "http://127.0.0.1:$front"
    }
    counted_behind 0 128 404
    says "Start vLLM with VLLM_SERVER_DEV_MODE=1"
    counted_behind 0 128 500
    says "the server's prefix cache was not emptied: POST /reset_prefix_cache was answered with HTTP 500: "
    says_not "VLLM_SERVER_DEV_MODE"
    counted_behind 0 129 200
    says_like '^  prefilled_tokens .* differs: POST /reset_prefix_cache did not empty the cache$'
    counted_behind 0 129 200
    says_like '^  prefilled_tokens .* fewer than expected, as if POST /reset_prefix_cache had emptied nothing$'
    counted_behind 3 128 200 200 500
    says "nothing can be counted: prepare, before repeat 2 on http://127.0.0.1:" "was answered with HTTP 500"
    kill "$engine"
    wait "$engine" 2> /dev/null || true
    # The same gate on a server that has larger blocks, and on one that has lost its prefix cache.
    for lost in "--slots 8 --decode-step 1ms --block-size 64" "--first 1ms --every 0"; do
        # shellcheck disable=SC2086  # several options
        "$llmbench" serve $lost --port "$at" > engine.log 2>&1 &
        engine=$!
        wait_for_port "$at"
        ends 1 run --config counted.toml
        says_like 'FAIL +prefilled_tokens == [0-9]+'
        kill "$engine"
        wait "$engine" 2> /dev/null || true
    done
    ends 2 count
    says "no server is named: give --url http://127.0.0.1:8000, or --command"
    lines 1
    ends 2 count --url "$url" --users 0
    says '--users is "0"'
}

all_parts=(help refusals gates five_gates refused_by_both files_of_pages waivers sweeps same_requests run_again files_of_others own_runs nothing_is_lost no_gate_is_left_out conversions counts)
parts=("${@:3}")
if ((${#parts[@]} == 0)); then parts=("${all_parts[@]}"); fi
if [[ ${parts[0]} == without ]]; then
    mapfile -t parts < <(printf '%s\n' "${all_parts[@]}" | grep -vxF "$(printf '%s\n' "${parts[@]:1}")")
fi
for part in "${parts[@]}"; do rm -rf "${work:?}"/*; "$part"; done
echo "$passed checks passed, $failed failed"
if ((failed > 0)); then exit 1; fi
if [[ $stalled ]]; then exit 77; fi
