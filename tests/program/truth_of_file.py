"""A log of `llmbench serve` as it would be had a client measured each time to the first token so much too late: made
from what the client wrote, so that its error is known.

    truth_of_file.py TOOL FILE MS > truth.jsonl        vllm, sglang, guidellm or aiperf"""
import json
import sys

tool, file, late = sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1e3
DAY_AHEAD = 1_700_000_000_000_000_000


def requests():
    """(id, sent, ttft, seconds between events, tokens) of each completed request, in seconds"""
    if tool in ("vllm", "sglang"):
        with open(file, encoding="utf-8") as f:
            d = json.loads(f.readline() if tool == "sglang" else f.read())
        for i, ttft in enumerate(d["ttfts"]):
            if not d["errors"][i]:
                sent = d["start_times"][i] if "start_times" in d else 1 + i
                yield (f"bench-7f-{i}" if tool == "vllm" else None), sent, ttft, d["itls"][i], d["output_lens"][i]
    elif tool == "guidellm":
        with open(file, encoding="utf-8") as f:
            d = json.load(f)
        for r in d["benchmarks"][0]["requests"]["successful"]:
            t = r["info"]["timings"]
            first, last = t["first_token_iteration"], t["last_token_iteration"]
            yield None, t["request_start"] - DAY_AHEAD / 1e9, first - t["request_start"], [last - first], r["output_tokens"]
    else:
        for line in open(file, encoding="utf-8"):
            r = json.loads(line)
            if "error" in r and r["error"]:
                continue
            m, of = r["metrics"], r["metadata"]
            gaps = [x / 1e3 for x in m["inter_chunk_latency"]["value"]]
            yield (of["x_request_id"], of["request_start_ns"] / 1e9 - DAY_AHEAD / 1e9, m["time_to_first_token"]["value"] / 1e3,
                   gaps, m["output_sequence_length"]["value"])


print(json.dumps({"schema": "llmbench/truth/1", "server": "made", "day_ahead_ns": DAY_AHEAD}))
for name, sent, ttft, gaps, tokens in requests():
    times = [ttft - late]
    for gap in gaps:
        times.append(times[-1] + gap)
    print(json.dumps({"received_ns": round(sent * 1e9), "id": name, "api": "openai_chat", "stream": True, "status": 200,
                      "ended": "ok", "output_tokens": tokens, "prompt_tokens": 1, "first_event_tokens": 1,
                      "end_ns": round(times[-1] * 1e9), "tokens_ns": [round(t * 1e9) for t in times], "doubts": []}))
