"""Runs the tools in turns against one server that logs the truth, and prints a table of each row.

    peers.py BUILD_DIR [--llmbench PROGRAM] [--repeats N] [--tools NAME,...] [--table] [ROW...]

The server is `llmbench serve`, of the program that --llmbench names (build/program/llmbench).
Results are kept in BUILD_DIR/results/ROW.jsonl, a line a run; --table prints what is there and runs nothing.
"""
import argparse
import copy
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import tools

LIMIT_S = 150          # of one run of one tool, its start included


class load:
    def __init__(self, about, streams=0, requests=0, tokens=50, rate=0, first="uniform(40ms, 60ms)", every="20ms",
                 faults=False):
        self.about, self.streams, self.requests, self.tokens, self.rate = about, streams, requests, tokens, rate
        self.first, self.every, self.faults = first, every, faults


ROWS = {
    "1": load("1 stream", 1, 10),
    "32": load("32 streams", 32, 192),
    "128": load("128 streams", 128, 384),
    "512": load("512 streams", 512, 1024),
    "1000": load("1000 streams", 1000, 2000),
    "flood": load("a flood on 16 streams", 16, 96, tokens=500, first="0ms", every="0ms"),
    "rate": load("50 requests a second", requests=300, rate=50),
    "faults": load("16 streams; of 20 requests one is refused and one is reset", 16, 200, tokens=16, faults=True),
}


# --- CPU time of a process and all that comes of it ----------------------------------------------

class large_fraction:
    """Before others that want the processor, where the kernel lets that be asked for (cgroup v1)."""

    def __init__(self):
        self.folder = pathlib.Path(f"/sys/fs/cgroup/cpu/peers-{os.getpid()}")
        try:
            self.folder.mkdir()
            (self.folder / "cpu.shares").write_text("262144")
        except OSError:
            self.folder = None

    def join(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        if self.folder:
            self.folder.rmdir()


class cpu_account:
    """A control group of its own, so that children that nobody waits for are counted, too."""

    def __init__(self):
        self.shares = large_fraction()
        name = f"peers-{os.getpid()}"
        for root, file, unit in (("/sys/fs/cgroup/cpuacct", "cpuacct.usage", 1e-9), ("/sys/fs/cgroup", "cpu.stat", 1e-6)):
            self.folder = pathlib.Path(root) / name
            self.file, self.unit = file, unit
            try:
                self.folder.mkdir()
                self.seconds()
                return
            except (OSError, ValueError, StopIteration):
                try:
                    self.folder.rmdir()
                except OSError:
                    pass
        sys.exit("peers.py: no control group can be made here that counts CPU time; it takes root")

    def seconds(self):
        text = (self.folder / self.file).read_text()
        if self.file == "cpu.stat":
            text = next(line for line in text.splitlines() if line.startswith("usage_usec")).split()[1]
        return int(text) * self.unit

    def join(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))
        self.shares.join()

    def processes(self):
        return [int(p) for p in (self.folder / "cgroup.procs").read_text().split()]

    def end_all(self):
        """What the run left behind: the group holds only what this program started."""
        for _ in range(50):
            left = self.processes()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)

    def close(self):
        self.end_all()
        self.folder.rmdir()
        self.shares.close()


class sampler(threading.Thread):
    """CPU seconds at times of the monotonic clock, so that start-up can be told from the load."""

    def __init__(self, account):
        super().__init__(daemon=True)
        self.account, self.samples, self.over = account, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            self.samples.append((time.monotonic_ns(), self.account.seconds()))
            self.over.wait(0.02)
        self.samples.append((time.monotonic_ns(), self.account.seconds()))

    def at(self, ns):
        before = self.samples[0]
        for sample in self.samples:
            if sample[0] >= ns:
                share = (ns - before[0]) / max(1, sample[0] - before[0])
                return before[1] + share * (sample[1] - before[1])
            before = sample
        return before[1]


def machine():
    fields = [int(f) for f in open("/proc/stat").readline().split()[1:]]
    return dict(busy=sum(fields[:3]) + sum(fields[5:7]), steal=fields[7], all=sum(fields[:8]))


# --- the truth -----------------------------------------------------------------------------------

class served:
    """A request of the server's log."""

    def __init__(self, line):
        self.how, self.tokens, self.received = line["ended"], len(line["tokens_ns"]), line["received_ns"]
        self.end = self.received + line["end_ns"]
        self.first, self.last = (self.received + line["tokens_ns"][i] if line["tokens_ns"] else -1 for i in (0, -1))


def percentile(values, q, rule):
    v = sorted(values)
    if rule == "rank":
        return v[max(0, -(-int(q * 1000) * len(v) // 1000) - 1)]
    if rule == "index":
        return v[min(len(v) - 1, int(q * len(v)))]
    at = q * (len(v) - 1)
    low = int(at)
    return v[low] + (at - low) * (v[min(low + 1, len(v) - 1)] - v[low])


def truth_of(path, what, tool):
    lines = [json.loads(line) for line in open(path)]
    asked = [served(line) for line in lines if "received_ns" in line]
    main = asked[-what.requests:]          # whatever came before was a tool's warm-up
    if tool.overshoots:
        main, whole = asked, max((r.tokens for r in asked), default=0)
        for r in main:
            if r.how == "left":            # "ok": closed at the last chunk, with [DONE] under way
                r.how = "ok" if r.tokens == whole else "dropped"
    if not main:
        raise RuntimeError("the server saw none of its requests")
    good = [r for r in main if r.how == "ok"]
    ttft = [(r.first - r.received) * 1e-6 for r in good]
    tpot = [(r.last - r.first) * 1e-6 / (r.tokens - 1) for r in good if r.tokens > 1]
    began, last_seen = min(r.received for r in main), max(r.received for r in main)
    ended = max(r.end for r in main)
    streams = sum(max(0, min(r.end, last_seen) - r.received) for r in main) / max(1, last_seen - began)
    counts = {}
    for r in main:
        counts[r.how] = counts.get(r.how, 0) + 1
    return dict(ttft_p50=percentile(ttft, 0.5, tool.rule), ttft_p99=percentile(ttft, 0.99, tool.rule),
                tpot=statistics.mean(tpot) if tpot else None, began=began, ended=ended,
                tokens=sum(r.tokens for r in main), seen=len(asked), counts=counts, streams=streams,
                rate=(len(main) - 1) * 1e9 / max(1, last_seen - began))


# --- one run -------------------------------------------------------------------------------------

def started_server(what, log, shares):
    command = [tools.Ours.program, "serve", "--port", "0", "--log", str(log), "--first", what.first, "--every", what.every]
    if what.faults:
        command += ["--fail", "5%", "--status", "503", "--drop", "5%"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=shares.join)
    return server, server.stdout.readline().split()[-1]


def last_words(path):
    lines = [line.strip() for line in open(path, errors="replace") if line.strip()]
    for word in ("Error", "error", "rror:"):
        told = [line for line in lines if word in line]
        if told:
            return told[-1][:300]
    return lines[-1][:300] if lines else "it said nothing"


def one_run(build, row, tool, account, folder):
    what = copy.copy(ROWS[row])
    if row.startswith("flood"):
        what.requests *= tool.flood    # the fast ones would be done before anything can be measured
    result = dict(row=row, tool=tool.name, date=time.strftime("%Y-%m-%d %H:%M"))
    why = tool.cannot(what)
    if why:
        return dict(result, cannot=why)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log, output = folder / "truth.jsonl", folder / "output.txt"
    environment = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                       HF_HOME=str(build / "hf"), TOKENIZERS_PARALLELISM="false", PYTHONUNBUFFERED="1",
                       NO_COLOR="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1")
    server, url = started_server(what, log, account.shares)

    before, machine_before = account.seconds(), machine()
    watch = sampler(account)
    watch.start()
    result["load"] = os.getloadavg()[0]
    began, late = time.monotonic(), False
    try:
        with open(output, "w") as out:
            client = subprocess.Popen(tool.command(what, url, folder), stdout=out, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, env=environment, cwd=folder, preexec_fn=account.join,
                                      start_new_session=True)
            try:
                client.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                late = True
    finally:
        account.end_all()
        client.wait()
        watch.over.set()
        watch.join()
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
    took, after = time.monotonic() - began, machine()
    own = account.seconds() - before
    ticks = os.sysconf("SC_CLK_TCK")
    whole = max(1, after["all"] - machine_before["all"])
    result.update(exit=client.returncode, seconds=took, cpu_whole=own, steal=(after["steal"] - machine_before["steal"]) / whole)
    if late:
        return dict(result, cannot=f"not done after {LIMIT_S} s")
    try:
        truth = truth_of(log, what, tool)
        cpu = watch.at(truth["ended"]) - watch.at(truth["began"])
        span = (truth["ended"] - truth["began"]) * 1e-9
        result.update(truth=truth, cpu_us=1e6 * cpu / max(1, truth["tokens"]), cores=cpu / max(1e-9, span))
        result["said"] = tool.said(what, folder, output)
    except Exception as e:  # whatever its files lack: it is told, and the other tools go on
        result["cannot"] = f"exit code {client.returncode}: {last_words(output)}" if client.returncode else repr(e)
    return result


# --- the table -----------------------------------------------------------------------------------

def middle(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def number(v, form="{:.2f}"):
    return "–" if v is None else form.format(v)


def milliseconds(v):
    if v is None:
        return "–"
    digits = 0 if abs(v) >= 100 else 1 if abs(v) >= 10 else 2
    return f"{round(v, digits) + 0:.{digits}f} ms"      # + 0: no minus before a zero


def of_runs(runs):
    done = [r for r in runs if "said" in r]
    if not done:
        return None
    error = lambda key: middle([r["said"][key] - r["truth"][key] if r["said"].get(key) is not None
                                and r["truth"].get(key) is not None else None for r in done])
    pace = lambda r: r["truth"]["tokens"] * 1e9 / max(1, r["truth"]["ended"] - r["truth"]["began"])
    return dict(n=len(done), cpu=middle([r["cpu_us"] for r in done]), cores=middle([r["cores"] for r in done]),
                p50=error("ttft_p50"), p99=error("ttft_p99"), tpot=error("tpot"),
                pace=middle([pace(r) for r in done]), truth_tpot=middle([r["truth"]["tpot"] for r in done]),
                streams=middle([r["truth"]["streams"] for r in done]), rate=middle([r["truth"]["rate"] for r in done]),
                spread=[min(r["cpu_us"] for r in done), max(r["cpu_us"] for r in done)],
                whole=middle([r["cpu_whole"] for r in done]), load=max(r["load"] for r in done),
                steal=max(r["steal"] for r in done), last=done[-1])


def table(row, runs, build):
    what = ROWS[row]
    print(f"\n**{what.about}**, {what.requests} requests of {what.tokens} tokens")
    by_tool = {t.name: [r for r in runs if r["tool"] == t.name] for t in tools.ALL}
    figures = {name: of_runs(rs) for name, rs in by_tool.items()}
    base = {name: figures[name]["cpu"] for name in ("raw reader", "llmbench") if figures.get(name)}
    if what.faults:
        print("\n| tool | server: answered | refused | reset | tool: completed | failed | not told | exit code |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    else:
        offered = "requests/s seen" if what.rate else "tokens/s" if row.startswith("flood") else "streams seen"
        print(f"\n| tool | CPU µs/token | x ours | x raw | cores | TTFT p50 error | p99 error | TPOT error | {offered} "
              "| CPU s of the whole run |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for tool in tools.ALL:
        f, rs = figures[tool.name], by_tool[tool.name]
        if not rs:
            continue
        if not f:
            print(f"| {tool.label} | {rs[-1].get('cannot', 'no result')} |")
        elif what.faults:
            c, s = f["last"]["truth"]["counts"], f["last"]["said"]
            bad = sum(v for k, v in c.items() if k not in ("ok", "dropped"))
            print(f"| {tool.label} | {c.get('ok', 0)} | {c.get('refused', 0)} | "
                  f"{c.get('reset', 0)} | {s['ok']} | {number(s['failed'], '{:.0f}')} | {bad - (s['failed'] or 0)} | "
                  f"{number(None if tool.name == 'llmbench' else f['last'].get('exit'), '{:d}')} |")
        else:
            ratio = lambda name: number(f["cpu"] / base[name], "{:.1f}") if base.get(name) else "–"
            seen = (f"{f['rate']:.1f}" if what.rate else f"{f['pace']:,.0f}" if row.startswith("flood")
                    else f"{f['streams']:.1f}" if f["streams"] < 100 else f"{f['streams']:.0f}")
            print(f"| {tool.label} | {number(f['cpu'], '{:.2f}' if f['cpu'] < 10 else '{:.0f}')} | {ratio('llmbench')} | {ratio('raw reader')} | "
                  f"{f['cores']:.2f} | {milliseconds(f['p50'])} | {milliseconds(f['p99'])} | {milliseconds(f['tpot'])} | "
                  f"{seen} | {f['whole']:.1f} |")
    done = [f for f in figures.values() if f]
    if row.startswith("flood"):
        print(f"\nThe raw reader, llmbench and the clients in Rust read {tools.Ours.flood} times as many answers.")
    if done:
        counts = [f["n"] for f in done]
        spreads = [f["spread"][1] / f["spread"][0] for f in done]
        differ = "" if what.faults else (
            f"their CPU µs/token differ by a factor of {statistics.median_high(spreads):.2f}, of one tool "
            f"{max(spreads):.2f}; ")
        print(f"\nRuns of each: {' to '.join(map(str, sorted({min(counts), max(counts)})))}; {differ}"
              f"load average up to {max(f['load'] for f in done):.1f}, steal up to "
              f"{100 * max(f['steal'] for f in done):.0f} %.")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--llmbench", default=tools.HERE.parents[2] / "build" / "program" / "llmbench")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tools", default="")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--add", action="store_true", help="to the results that are there")
    args = parser.parse_intermixed_args()
    build = args.build.resolve()
    if not build.is_dir():
        parser.error(f"there is no folder {build}: setup.sh makes it")
    tools.Ours.program = os.path.realpath(args.llmbench)
    rows = args.rows or list(ROWS)
    for row in rows:
        if row not in ROWS:
            parser.error(f"no row {row}; there are {', '.join(ROWS)}")
    wanted = [t for t in args.tools.split(",") if t]
    chosen = [t(build) for t in tools.ALL if not wanted or t.name in wanted]
    results = build / "results"
    results.mkdir(exist_ok=True)
    account = None if args.table else cpu_account()
    try:
        for row in rows:
            file = results / f"{row}.jsonl"
            if not args.table:
                if not args.add:
                    file.unlink(missing_ok=True)
                for repeat in range(args.repeats):
                    for tool in chosen:
                        if not tool.there():
                            continue
                        r = one_run(build, row, tool, account, build / "runs" / f"{row}-{tool.name.replace(' ', '-')}")
                        with open(file, "a") as f:
                            f.write(json.dumps(r) + "\n")
                        told = r.get("cannot") or f"{r['cpu_us']:.1f} us/token"
                        print(f"{row} {tool.name} {repeat + 1}: {told}, {r.get('seconds', 0):.0f} s", file=sys.stderr)
            if file.exists():
                table(row, [json.loads(line) for line in open(file)], build)
    finally:
        if account:
            account.close()


if __name__ == "__main__":
    main()
