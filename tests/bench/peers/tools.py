"""The tools of the comparison: how each is asked for a load, and what it says of it.

A tool gets a `load` (see peers.py) and a folder, and gives a command; after the run it reads its own files
in that folder and gives `said`: TTFT p50 and p99 and mean TPOT in ms by its own definition, and how many
requests it tells as completed and as failed. `rule` is how it picks a percentile from a sample. What its numbers
mean, and its version, stand in README.md and setup.sh.
"""
import json
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def last_json(path):
    return json.loads(pathlib.Path(path).read_text().strip().splitlines()[-1])


def found(folder, pattern):
    files = sorted(folder.rglob(pattern))
    if not files:
        raise RuntimeError(f"it left no {pattern}")
    return files[-1]


class Tool:
    name = label = ""
    rule = "linear"
    flood = 1                   # times as many requests in a flood
    overshoots = False          # it asks for more requests than it was told, and drops those that are open at its end

    def __init__(self, build):
        self.build = build
        self.model = build / "model"

    def installed(self, *parts):
        return str(self.build.joinpath(*parts))

    def there(self):
        return os.path.exists(self.installed(*self.needs))

    def kept(self, folder):
        """What `llmbench judge` reads of a run, or nothing."""
        return None

    def cannot(self, load):
        """Why this load is not one of its own, or nothing."""
        return ""


class Raw(Tool):
    name = label = "raw reader"
    needs = ("raw_client",)
    flood = 50
    rule = "rank"

    def cannot(self, load):
        return "it knows of no failure" if load.faults else ""

    def command(self, load, url, folder):
        return [self.installed("raw_client"), url.rsplit(":", 1)[1], str(load.streams), str(load.requests),
                str(load.tokens)] + ([str(load.rate)] if load.rate else [])

    def said(self, load, folder, output):
        d = last_json(output)
        return dict(ttft_p50=d["ttft_p50"], ttft_p99=d["ttft_p99"], tpot=d["tpot_mean"], ok=d["ok"], failed=None)


class Ours(Tool):
    name = label = "llmbench"
    flood = 50
    rule = "rank"
    program = ""                # the program llmbench

    def there(self):
        return os.path.exists(self.program)

    def kept(self, folder):
        return folder / "report"

    def command(self, load, url, folder):
        # Two repeats are the least.
        arrivals = ["--arrivals", f"constant({load.rate}rps)"] if load.rate else ["--users", str(load.streams)]
        return [self.program, "run", "--url", url, *arrivals, "--requests", str(max(load.requests // 2, load.streams)),
                "--repeats", "2", "--warmup", "0", "--prompt-tokens", "16", "--output-tokens", str(load.tokens),
                "--slo", "p50(e2e) <= 1 min", "--report", str(folder / "report")]

    def said(self, load, folder, output):
        d = json.loads((folder / "report" / "result.json").read_text())["gates"][0]["candidate"]
        ttft, statuses = d["ttft_from_send"], d["statuses"]
        ms = lambda v: None if v is None else 1e3 * v
        return dict(ttft_p50=ms(ttft["p50"]), ttft_p99=ms(ttft["p99"]), tpot=ms(d["tpot"]["mean"]),
                    ok=statuses.get("ok", 0), failed=sum(n for status, n in statuses.items() if status != "ok"))


class Vllm(Tool):
    name, label = "vllm", "vLLM `bench serve`"
    needs = ("vllm", "bin", "vllm")

    def kept(self, folder):
        return folder / "result.json"

    def command(self, load, url, folder):
        return [self.installed("vllm", "bin", "vllm"), "bench", "serve", "--backend", "openai-chat", "--base-url", url,
                "--endpoint", "/v1/chat/completions", "--model", "tiny", "--tokenizer",
                str(self.model), "--dataset-name", "random", "--random-input-len", "16", "--random-output-len",
                str(load.tokens), "--num-prompts", str(load.requests), "--ignore-eos", "--save-result",
                "--save-detailed", "--result-dir", str(folder), "--result-filename", "result.json",
                "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,99", "--disable-tqdm"] + (
                    ["--request-rate", str(load.rate), "--burstiness", "inf"] if load.rate
                    else ["--max-concurrency", str(load.streams)])

    def said(self, load, folder, output):
        d = json.loads((folder / "result.json").read_text())
        return dict(ttft_p50=d["p50_ttft_ms"], ttft_p99=d["p99_ttft_ms"], tpot=d["mean_tpot_ms"], ok=d["completed"],
                    failed=d["failed"])


class VllmRust(Vllm):
    """The client of VLLM_USE_RUST_BENCH=1, the program vllm-rs of vLLM's wheel. It asks /tokenize about its prompts,
    unless it sends token ids."""
    name, label = "vllm-rust", "vLLM `bench serve`, Rust"
    needs = ("vllm-rust", "vllm-rs")
    flood = Ours.flood

    def command(self, load, url, folder):
        return [self.installed("vllm-rust", "vllm-rs"), *super().command(load, url, folder)[1:], "--prompt-token-ids"]


class Sglang(Tool):
    name, label = "sglang", "SGLang `bench_serving`"
    needs = ("sglang", "bin", "python")

    def kept(self, folder):
        return folder / "result.jsonl"

    def command(self, load, url, folder):
        return [self.installed("sglang", "bin", "python"), "-m", "sglang.benchmark.serving", "--backend",
                "sglang-oai-chat", "--base-url", url, "--model", str(self.model), "--tokenizer", str(self.model),
                "--dataset-name", "random-ids", "--random-input-len", "16", "--random-output-len", str(load.tokens),
                "--random-range-ratio", "1", "--num-prompts", str(load.requests), "--warmup-requests", "0",
                "--output-file", str(folder / "result.jsonl"), "--output-details", "--disable-tqdm"] + (
                    ["--request-rate", str(load.rate)] if load.rate
                    else ["--max-concurrency", str(load.streams)])

    def said(self, load, folder, output):
        d = last_json(folder / "result.jsonl")
        errors = sum(1 for e in d.get("errors", []) if e)
        return dict(ttft_p50=d["median_ttft_ms"], ttft_p99=d["p99_ttft_ms"], tpot=d["mean_tpot_ms"],
                    ok=d["completed"], failed=errors)


class SglangRust(Sglang):
    """The client of --rust-client, the module _bench of SGLang's wheel."""
    name, label = "sglang-rust", "SGLang `bench_serving`, Rust"
    needs = ("sglang-rust", "_bench.so")
    flood = Ours.flood

    def cannot(self, load):
        return "" if not load.rate else "its arrivals are drawn at random"

    def command(self, load, url, folder):
        start = (f"import sys; sys.path.insert(0, {str(self.build / 'sglang-rust')!r}); import _bench; "
                 "_bench.run_argv(['sglang-bench', *sys.argv[1:]])")
        return [self.installed("sglang-rust", "python"), "-c", start, *super().command(load, url, folder)[3:]]


class Guidellm(Tool):
    name, label = "guidellm", "guidellm"
    needs = ("guidellm", "bin", "guidellm")
    rule = "rank"

    def kept(self, folder):
        return folder / "result.json"

    def command(self, load, url, folder):
        profile = f"kind=constant,rate={load.rate}" if load.rate else f"kind=concurrent,streams={load.streams}"
        return [self.installed("guidellm", "bin", "guidellm"), "run", "--backend",
                f"kind=openai_http,target={url},model=tiny", "--profile", profile, "--constraint",
                f"kind=max_requests,count={load.requests}", "--tokenizer",
                f"kind=huggingface_auto,model={self.model}", "--data",
                f"kind=synthetic_text,prompt_tokens=16,output_tokens={load.tokens}", "--output",
                f"kind=json,path={folder / 'result.json'}", "--disable-console-interactive"]

    def said(self, load, folder, output):
        m = json.loads((folder / "result.json").read_text())["benchmarks"][0]["metrics"]
        ttft = m["time_to_first_token_ms"]["successful"]["percentiles"]
        totals = m["request_totals"]
        return dict(ttft_p50=ttft["p50"], ttft_p99=ttft["p99"], tpot=m["inter_token_latency_ms"]["successful"]["mean"],
                    ok=totals["successful"], failed=totals["errored"], incomplete=totals["incomplete"])


class Aiperf(Tool):
    name, label = "aiperf", "AIPerf"
    needs = ("aiperf", "bin", "aiperf")

    def kept(self, folder):
        return found(folder, "profile_export.jsonl")

    def command(self, load, url, folder):
        return [self.installed("aiperf", "bin", "aiperf"), "profile", "-m", "tiny", "--url", url, "--endpoint-type",
                "chat", "--streaming", "--tokenizer", "peers/tiny", "--request-count", str(load.requests), "--isl",
                "16", "--osl", str(load.tokens), "--extra-inputs", "ignore_eos:true", "--artifact-dir", str(folder),
                "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics"] + (
                    ["--request-rate", str(load.rate), "--request-rate-mode", "constant"] if load.rate
                    else ["--concurrency", str(load.streams)])

    def said(self, load, folder, output):
        d = json.loads(found(folder, "profile_export_aiperf.json").read_text())
        count = lambda key: int((d.get(key) or {"avg": 0})["avg"])
        ttft = d["time_to_first_token"]
        return dict(ttft_p50=ttft["p50"], ttft_p99=ttft["p99"], tpot=d["inter_token_latency"]["avg"],
                    ok=count("request_count"), failed=count("error_request_count"))


class InferencePerf(Tool):
    name, label = "inference-perf", "inference-perf"
    needs = ("inference-perf", "bin", "inference-perf")

    def command(self, load, url, folder):
        stage = (f"{{rate: {load.rate}, duration: {round(load.requests / load.rate)}}}" if load.rate
                 else f"{{num_requests: {load.requests}, concurrency_level: {load.streams}}}")
        # Random token ids go to /v1/completions alone; its chat has no data that is made on the spot.
        same = lambda n: f"{{min: {n}, max: {n}, mean: {n}, std_dev: 0, total_count: {load.requests}}}"
        (folder / "config.yml").write_text(f"""\
load: {{type: {'constant' if load.rate else 'concurrent'}, stages: [{stage}]}}
api: {{type: completion, streaming: true}}
server: {{type: vllm, model_name: tiny, base_url: "{url}", ignore_eos: true}}
tokenizer: {{pretrained_model_name_or_path: "{self.model}"}}
data:
  type: random
  input_distribution: {same(16)}
  output_distribution: {same(load.tokens)}
report: {{request_lifecycle: {{summary: true, percentiles: [50, 99]}}}}
storage: {{local_storage: {{path: "{folder / 'report'}"}}}}
""")
        return [self.installed("inference-perf", "bin", "inference-perf"), "-c", str(folder / "config.yml")]

    def said(self, load, folder, output):
        d = json.loads(found(folder, "summary_lifecycle_metrics.json").read_text())
        latency = d["successes"]["latency"]
        ttft = latency["time_to_first_token"]
        return dict(ttft_p50=1e3 * ttft["median" if "median" in ttft else "p50"], ttft_p99=1e3 * ttft["p99"],
                    tpot=1e3 * latency["time_per_output_token"]["mean"], ok=d["successes"]["count"],
                    failed=d["failures"]["count"])


class Evalscope(Tool):
    name, label = "evalscope", "evalscope `perf`"
    needs = ("evalscope", "bin", "evalscope")
    rule = "index"

    def command(self, load, url, folder):
        return [self.installed("evalscope", "bin", "evalscope"), "perf", "--api", "openai", "--url",
                url + "/v1/chat/completions", "--model", "tiny", "--tokenizer-path", str(self.model), "--dataset",
                "random", "--min-prompt-length", "16", "--max-prompt-length", "16", "--max-tokens", str(load.tokens),
                "--min-tokens", str(load.tokens), "--extra-args", '{"ignore_eos": true}', "--number",
                str(load.requests), "--stream", "--outputs-dir", str(folder), "--no-timestamp",
                "--no-test-connection"] + (
                    ["--open-loop", "--rate", str(load.rate)] if load.rate else ["--parallel", str(load.streams)])

    def said(self, load, folder, output):
        summary = json.loads(found(folder, "benchmark_summary.json").read_text())
        percentiles = json.loads(found(folder, "benchmark_percentile.json").read_text())
        return evalscope_said(summary, percentiles)


def evalscope_said(summary, percentiles):
    at = {row["Percentiles"]: row for row in percentiles}
    return dict(ttft_p50=at["50%"]["TTFT (ms)"], ttft_p99=at["99%"]["TTFT (ms)"], tpot=summary["Avg TPOT (ms)"],
                ok=summary["Success Requests"], failed=summary["Failed Requests"])


class GenaiBench(Tool):
    name, label = "genai-bench", "genai-bench"
    needs = ("genai-bench", "bin", "genai-bench")
    overshoots = True

    def cannot(self, load):
        return "it has users in a closed loop, and no rate" if load.rate else ""

    def command(self, load, url, folder):
        return [self.installed("genai-bench", "bin", "genai-bench"), "benchmark", "--api-backend", "vllm", "--api-base",
                url, "--api-key", "none", "--api-model-name", "tiny", "--model-tokenizer", str(self.model), "--task",
                "text-to-text", "--traffic-scenario", f"D(16,{load.tokens})", "--num-concurrency", str(load.streams),
                "--max-requests-per-run", str(load.requests), "--max-time-per-run", "2", "--metrics-time-unit", "ms",
                "--experiment-base-dir", str(folder), "--experiment-folder-name", "report"]

    def said(self, load, folder, output):
        d = json.loads(found(folder, "D*_time_*.json").read_text())["aggregated_metrics"]
        ttft, tpot = d["stats"]["ttft"], d["stats"]["tpot"]
        return dict(ttft_p50=ttft["p50"], ttft_p99=ttft["p99"], tpot=tpot["mean"], ok=d["num_completed_requests"],
                    failed=d["num_error_requests"])


class K6(Tool):
    name, label = "k6", "k6"
    needs = ("k6", "k6")

    def command(self, load, url, folder):
        values = dict(URL=url, STREAMS=load.streams, REQUESTS=load.requests, TOKENS=load.tokens, RATE=load.rate or 0,
                      OUT=folder / "result.json")
        return [self.installed("k6", "k6"), "run", "--quiet", "--no-usage-report"] + [
            part for k, v in values.items() for part in ("-e", f"{k}={v}")] + [str(HERE / "k6.js")]

    def said(self, load, folder, output):
        m = json.loads((folder / "result.json").read_text())["metrics"]
        wait = m["http_req_waiting"]["values"]
        failed = m["http_req_failed"]["values"]
        return dict(ttft_p50=wait["p(50)"], ttft_p99=wait["p(99)"], tpot=None, ok=failed["fails"],
                    failed=failed["passes"])


ALL = [Raw, Ours, VllmRust, Vllm, SglangRust, Sglang, Guidellm, Aiperf, InferencePerf, Evalscope, GenaiBench, K6]
