"""A client whose own times are known: it asks `llmbench serve` and prints, a JSON line for each request, when it
had sent it and when each piece of the answer was there, on the clock of the server's log (CLOCK_MONOTONIC).

    truth_client.py PORT COUNT TOKENS [--no-id] [--chunked] [--csv FILE]"""
import argparse
import http.client
import json
import time

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("count", type=int)
options.add_argument("tokens", type=int)
options.add_argument("--no-id", action="store_true")
options.add_argument("--chunked", action="store_true")
options.add_argument("--csv")
o = options.parse_args()

rows = []
connection = http.client.HTTPConnection("127.0.0.1", o.port, timeout=60)
for i in range(o.count):
    body = json.dumps({"stream": True, "max_tokens": o.tokens, "prompt": "one two three"}).encode()
    headers = {"Content-Type": "application/json"} | ({} if o.no_id else {"X-Request-Id": f"id-{i}"})
    if o.chunked:
        headers["Transfer-Encoding"] = "chunked"
    before = time.monotonic_ns()
    connection.request("POST", "/v1/completions", iter([body[:9], body[9:]]) if o.chunked else body, headers,
                       encode_chunked=o.chunked)
    sent = time.monotonic_ns()
    answer = connection.getresponse()
    times, ended = [], 0
    for line in answer:
        now = time.monotonic_ns()
        if b'"text":" ' in line:
            times.append(now)
        if b"[DONE]" in line:
            ended = now
    rows.append({"id": f"id-{i}", "before_ns": before, "sent_ns": sent, "tokens_ns": times, "end_ns": ended})
    print(json.dumps(rows[-1]), flush=True)
if o.csv:
    with open(o.csv, "w", encoding="utf-8") as out:
        out.write(("" if o.no_id else "id,") + "ttft_ms,tpot_ms,e2e_s\n")
        for i, r in enumerate(rows):
            first = (r["tokens_ns"][0] - r["sent_ns"]) / 1e6
            tpot = (r["tokens_ns"][-1] - r["tokens_ns"][0]) / 1e6 / (o.tokens - 1)
            out.write(("" if o.no_id else r["id"] + ",") + f"{first:.6f},{tpot:.6f},{(r['end_ns'] - r['sent_ns']) / 1e9:.9f}\n")
