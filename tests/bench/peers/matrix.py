"""The matrix of client errors that vLLM publishes of its own clients, for all tools whose files `llmbench judge` reads:
first token after 50 ms, then one every 10 ms, 100 tokens, 1 to 1000 streams, three trials, tools in turns. The
server is `llmbench serve`, and `llmbench judge --truth` measures.

    matrix.py BUILD_DIR LLMBENCH [--trials N] [--streams N,...] [--tools NAME,...] [--every MS] [--table]

Results are kept in BUILD_DIR/results/matrix.jsonl, a line a run; --table prints what is there and runs nothing.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import time

import tools

LIMIT_S = 300          # of one run of one tool, its start included


class Load:
    def __init__(self, streams):
        self.streams, self.requests, self.tokens, self.rate, self.faults = streams, max(min(100, 20 * streams), 2 * streams), 100, 0, False


def one_run(llmbench, tool, load, every, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "truth.jsonl"
    server = subprocess.Popen([llmbench, "serve", "--port", "0", "--first", "50ms", "--every", f"{every}ms", "--log", str(log)],
                              stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        environment = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                           HF_HOME=str(tool.build / "hf"), NO_COLOR="1", OPENAI_API_KEY="none", PYTHONUNBUFFERED="1")
        with open(folder / "output", "w", encoding="utf-8") as out:
            done = subprocess.run(tool.command(load, url, folder), stdout=out, stderr=subprocess.STDOUT, env=environment,
                                  cwd=folder, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    judge = [llmbench, "judge", str(tool.kept(folder)), "--truth", str(log), "--out", str(folder / "errors.json")]
    judged = subprocess.run(judge, capture_output=True, text=True, check=False)
    if judged.returncode == 2:      # no ids, and an order that tells nothing
        judged = subprocess.run([*judge, "--match", "ranks"], capture_output=True, text=True, check=False)
    if not (folder / "errors.json").exists():
        raise RuntimeError(f"exit code {done.returncode}, {(judged.stderr or judged.stdout).strip()[-300:]}")
    errors = json.loads((folder / "errors.json").read_text())
    end = json.loads(log.read_text().splitlines()[-1])
    of = {e["metric"]: e for e in errors["errors"] if e["definition"] == "llmbench"}
    said = {"matched_by": errors["matched_by"], "server_late_p99_s": end["late_p99_ns"] / 1e9, "hand_overs": end["hand_overs"]}
    # A file that does not tell a role from a token has the tool's own times alone.
    own = {e["metric"].lower(): e for e in errors["errors"] if e["definition"] != "llmbench"}
    for name, metric in (("ttft", "ttft_from_send"), ("tpot", "tpot"), ("itl", "itl")):
        error = of.get(metric) or own.get(name)
        if error:
            said[name] = {k: error[k] for k in ("p50_s", "p99_s", "bias_s", "lost")}
    return said


def cell(runs, metric, statistic):
    values = [r[metric][statistic] for r in runs if metric in r]
    if not values:
        return "–"
    middle = statistics.median(math.inf if v is None else v for v in values)
    if math.isinf(middle):
        return "lost"
    late = any(r["server_late_p99_s"] > 0.001 for r in runs)
    return f"{1e3 * middle:.3g}" + ("*" if late else "")


def table(results):
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    streams = sorted({line["streams"] for line in lines})
    for title, metric, statistic in (("TTFT, p99 of the error in ms", "ttft", "p99_s"),
                                     ("TPOT, p99 of the error in ms", "tpot", "p99_s"),
                                     ("gaps, p99 of the error in ms", "itl", "p99_s")):
        print(f"**{title}**\n\n| tool | " + " | ".join(map(str, streams)) + " |\n| --- |" + " ---: |" * len(streams))
        for name in dict.fromkeys(line["tool"] for line in lines):
            of = [[x for x in lines if x["tool"] == name and x["streams"] == n and "error" not in x] for n in streams]
            print(f"| {name} | " + " | ".join(cell(runs, metric, statistic) if runs else "–" for runs in of) + " |")
        print()
    print("\\* the server itself was more than 1 ms late at the p99; its log knows, so the errors are of the client.\n")
    for line in lines:
        if "error" in line:
            print(f"- {line['tool']} at {line['streams']} streams: {line['error']}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("llmbench")
    options.add_argument("--trials", type=int, default=3)
    options.add_argument("--streams", default="1,32,128,512,1000")
    options.add_argument("--every", type=float, default=10)
    options.add_argument("--tools")
    options.add_argument("--table", action="store_true")
    o = options.parse_args()
    results = o.build.resolve() / "results" / "matrix.jsonl"
    if o.table:
        return table(results)
    tools.Ours.program = os.path.realpath(o.llmbench)
    known = [t(o.build.resolve()) for t in tools.ALL]
    wanted = o.tools.split(",") if o.tools else None
    runs = [t for t in known if (not wanted or t.name in wanted) and type(t).kept is not tools.Tool.kept and t.there()]
    results.parent.mkdir(parents=True, exist_ok=True)
    for trial in range(o.trials):
        for n in map(int, o.streams.split(",")):
            for tool in runs:
                line = {"tool": tool.name, "streams": n, "trial": trial, "every_ms": o.every, "at": time.time()}
                try:
                    line |= one_run(tools.Ours.program, tool, Load(n), o.every, o.build.resolve() / "runs" / f"matrix-{tool.name}")
                except (RuntimeError, OSError, subprocess.TimeoutExpired, IndexError, ValueError) as e:
                    line["error"] = str(e)[:300]
                print(json.dumps(line), flush=True)
                with open(results, "a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
    return table(results)


if __name__ == "__main__":
    main()
