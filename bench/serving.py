#!/usr/bin/env python3
"""What serving options are worth: servers that differ in one option, the same load, in turns.

usage: serving.py cpu|gpu [--gauntlet FILE] [--only NAME,...] [--rounds N] [--json FILE]
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

CPU_CONTINUOUS = ["--batching", "continuous", "--max-sequences", "128"]
CPU_ARRIVALS = ["--sweep", "rate=32..128", "--duration", "10", "--warmup", "8", "--prompt-tokens",
                "lognormal:128,0.8,1024", "--output-tokens", "lognormal:64,0.8,512", "--slo",
                "ttft=1,tpot=0.05", "--temperature", "0"]

# A comparison: two servers (off first), one load, one figure of its JSON.
CPU = {
    "model": [],
    # Against a static batch of a fixed shape, and against one that computes nothing more for
    # answers that have ended.
    "batching": {
        "off": ["--batching", "static", "--static-batch", "8", "--static-slots", "kept"],
        "on": CPU_CONTINUOUS, "load": CPU_ARRIVALS, "figure": "goodput", "better": "higher"},
    "batching_freed": {
        "off": ["--batching", "static", "--static-batch", "8", "--static-slots", "freed"],
        "on": CPU_CONTINUOUS, "load": CPU_ARRIVALS, "figure": "goodput", "better": "higher"},
    "chunked_prefill": {
        "off": ["--chunked-prefill", "off", "--max-batch-tokens", "2048"],
        "on": ["--chunked-prefill", "on", "--max-batch-tokens", "256"],
        # A stream sees a prompt arrive whenever one of the 31 others ends: at 12% of its steps
        # once lengths have spread them, so that the 95th percentile is of those.
        "load": ["--concurrency", "32", "--requests", "224", "--warmup", "96", "--prompt-tokens",
                 "uniform:1024..1536", "--output-tokens", "uniform:32..480", "--temperature", "0"],
        "figure": "itl_p95", "better": "lower"},
    "prefix_cache": {
        "off": ["--prefix-cache", "off"],
        "on": ["--prefix-cache", "on"],
        "load": ["--rate", "3", "--requests", "60", "--warmup", "8", "--prompt-tokens", "32",
                 "--shared-prefix", "4:1024:80%", "--output-tokens", "16"],
        "figure": "ttft_median", "better": "lower"},
    "server": {"streams": 16, "prompt": 32, "output": 256, "requests": 128, "context": 160},
    "server_at_once": {"streams": 16, "prompt": 32, "output": 256, "requests": 128,
                       "context": 160, "arguments": ["--stream-interval", "0"]},
}
SHAPE = ["--backend", "cuda", "--weights", "random", "--shape", "gpt-oss-20b"]
GPU = {
    "model": SHAPE,
    "batching": {
        "off": ["--batching", "static", "--static-batch", "8"],
        "on": ["--batching", "continuous", "--max-sequences", "256"],
        "load": ["--sweep", "rate=8..128", "--duration", "6", "--warmup", "16", "--vocab", "200000",
                 "--prompt-tokens", "lognormal:512,0.8,4096", "--output-tokens",
                 "lognormal:128,0.8,1024", "--slo", "ttft=1,tpot=0.05"],
        "figure": "goodput", "better": "higher"},
    "server": {"streams": 256, "prompt": 1024, "output": 1024, "requests": 512, "context": 1536,
               "vocab": "200000"},
    # Requests by streams.
    "loops": {"requests": {"1": 3, "8": 16, "64": 128, "256": 512}, "prompt": 1024, "output": 1024,
              "vocab": "200000"},
}


class Server:
    """`gauntlet serve` on a free port, ready to answer."""

    def __init__(self, gauntlet, arguments):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [gauntlet, "serve", "--port", "0", *arguments], stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if "://" not in line:
            self.log.seek(0)
            sys.exit(f"serving.py: no server with {' '.join(arguments)}: {self.log.read()}")
        self.url = "http" + line.strip().split("http", 1)[1]
        while True:
            try:
                urllib.request.urlopen(self.url + "/ready")
                return
            except OSError:
                time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def load(gauntlet, url, arguments):
    out = subprocess.run(
        [gauntlet, "load", "--url", url, "--ignore-eos", "--format", "json", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode != 0:
        sys.exit(f"serving.py: load failed: {out.stderr}")
    return json.loads(out.stdout)


def figure_of(result, name):
    """The figure and its interval within the run."""
    if name == "goodput":
        best = max(result["points"], key=lambda point: point["goodput_per_s"]["value"] or 0)
        return best["goodput_per_s"], best
    point = result["points"][0]
    latency, which = name.split("_")
    return point[f"{latency}_s"][which], point


def interval_text(figure):
    if figure.get("lo") is None:
        return f"{figure['value']:.4g}"
    return f"{figure['value']:.4g} [{figure['lo']:.4g}, {figure['hi']:.4g}]"


def student(ratios):
    """The middle of ratios and its 95% interval: Student's over their logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = sum(logs) / len(logs)
    if len(logs) == 1:
        return {"value": math.exp(middle), "lo": None, "hi": None}
    quantile = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26]
    spread = math.sqrt(sum((x - middle) ** 2 for x in logs) / (len(logs) - 1) / len(logs))
    half = (quantile[len(logs) - 2] if len(logs) <= 10 else 2.2) * spread
    return {"value": math.exp(middle), "lo": math.exp(middle - half), "hi": math.exp(middle + half)}


def compare(gauntlet, settings, name, rounds):
    """Off and on in turns: off, on, on, off."""
    what = settings[name]
    figures = {"off": [], "on": []}
    for index in range(rounds):
        for side in ("off", "on") if index % 2 == 0 else ("on", "off"):
            with Server(gauntlet, settings["model"] + what[side]) as server:
                result = load(gauntlet, server.url, what["load"])
            figure, point = figure_of(result, what["figure"])
            figures[side].append(figure)
            errors = sum(error["count"] for one in result["points"] for error in one["errors"])
            print(f"{name:16} {side:4} {what['figure']:12} {interval_text(figure)}"
                  f"  (offered {point['offered_per_s']:.3g}/s, {errors} errors)", flush=True)
    ratios = [on["value"] / off["value"] if what["better"] == "higher" else off["value"] / on["value"]
              for off, on in zip(figures["off"], figures["on"])]
    middle = student(ratios)
    print(f"{name:16} on is {interval_text(middle)} times better"
          f" (rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)})", flush=True)
    return {"figures": figures, "ratios": ratios, "ratio": middle}


def load_arguments(what):
    """A closed loop of so many streams."""
    streams = str(what["streams"])
    arguments = ["--concurrency", streams, "--requests", str(what["requests"]), "--warmup", streams,
                 "--prompt-tokens", str(what["prompt"]), "--output-tokens", str(what["output"]),
                 "--temperature", "0"]
    return arguments + (["--vocab", what["vocab"]] if "vocab" in what else [])


def run_bench(gauntlet, arguments):
    bench = subprocess.run([gauntlet, "bench", *arguments, "--activations", "auto", "--format", "json"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if bench.returncode != 0:
        sys.exit(f"serving.py: bench failed: {bench.stderr}")
    return json.loads(bench.stdout)


def serve_streams(gauntlet, settings, name):
    """Output tokens per second of a closed loop through HTTP, client included: while the load is
    on, and over whole waves of requests."""
    what = settings[name]
    with Server(gauntlet, settings["model"] + ["--max-sequences", str(what["streams"])]
                + what.get("arguments", [])) as server:
        point = load(gauntlet, server.url, load_arguments(what))["points"][0]
    return tuple(part["output_tokens_per_s"]["value"] for part in (point["steady"] or point, point))


def bench_streams(gauntlet, settings, name):
    """The same without HTTP: the engine's decoding alone, and the closed loop over its service."""
    what = settings[name]
    loop = ":".join(str(what[key]) for key in ("streams", "prompt", "output", "requests"))
    result = run_bench(gauntlet, [*settings["model"], "--batch", str(what["streams"]), "--context",
                                  str(what["context"]), "--decode", "64", "--prefill",
                                  str(what["prompt"]), "--closed-loop", loop])
    rows = {row["test"]: row["tok_s"]["value"] for row in result["rows"]}
    return rows["decode"], result["closed_loops"][0]["tok_s"]["value"]


def compare_with_bench(gauntlet, settings, name, rounds):
    """Through HTTP and bare, in turns."""
    what = settings[name]
    steady, served, decode, bare = [], [], [], []
    for index in range(rounds):
        for side in ("http", "bare") if index % 2 == 0 else ("bare", "http"):
            if side == "http":
                one_steady, one_served = serve_streams(gauntlet, settings, name)
                steady.append(one_steady)
                served.append(one_served)
            else:
                one_decode, one_bare = bench_streams(gauntlet, settings, name)
                decode.append(one_decode)
                bare.append(one_bare)
        print(f"{name:16} {what['streams']} streams of {what['prompt']} + {what['output']}: "
              f"{steady[-1]:.0f} output tok/s through HTTP; over whole waves {served[-1]:.0f}, "
              f"without HTTP {bare[-1]:.0f}; "
              f"decode at batch {what['streams']} {decode[-1]:.0f}", flush=True)
    of_decode = student([a / b for a, b in zip(steady, decode)])
    of_bare = student([a / b for a, b in zip(served, bare)])
    print(f"{name:16} {interval_text(of_decode)} of decode alone, {interval_text(of_bare)} of "
          f"the closed loop without HTTP", flush=True)
    return {"steady": steady, "served": served, "decode": decode, "bare": bare,
            "of_decode": of_decode, "of_bare": of_bare}


def bench_loops(gauntlet, settings, what, figures):
    """Closed loops without HTTP, and what prefill and decode alone would give."""
    loops = ",".join(f"{streams}:{what['prompt']}:{what['output']}:{requests}"
                     for streams, requests in what["requests"].items())
    result = run_bench(gauntlet, [*settings["model"], "--prefill", "64", "--decode", "16",
                                  "--no-ceilings", "--closed-loop", loops])
    for loop in result["closed_loops"]:
        figure = figures[str(loop["streams"])]
        figure["alone"].append(loop["alone_tok_s"])
        figure["bare"].append(loop["tok_s"]["value"])
        figure["gap_us"].append(loop["gap_us"])
        print(f"{loop['streams']:>5} streams without HTTP: {loop['tok_s']['value']:.0f} output tok/s, "
              f"{loop['percent_of_alone']:.1f}% of prefill and decode alone, {loop['gap_us']} us "
              "between steps", flush=True)


def serve_loops(gauntlet, settings, what, figures):
    """The same through HTTP, of one server."""
    most = max(what["requests"], key=int)
    with Server(gauntlet, settings["model"] + ["--max-sequences", most]) as server:
        for streams, figure in figures.items():
            arguments = load_arguments({**what, "streams": int(streams),
                                        "requests": what["requests"][streams]})
            point = load(gauntlet, server.url, arguments)["points"][0]
            figure["http"].append(point["output_tokens_per_s"]["value"])
            print(f"{streams:>5} streams through HTTP: {figure['http'][-1]:.0f} output tok/s",
                  flush=True)


def compare_loops(gauntlet, settings, name, rounds):
    """Closed loops of several widths, bare and through HTTP, in turns."""
    what = settings[name]
    figures = {streams: {"alone": [], "bare": [], "http": [], "gap_us": []}
               for streams in what["requests"]}
    for index in range(rounds):
        for way in (bench_loops, serve_loops)[::1 if index % 2 == 0 else -1]:
            way(gauntlet, settings, what, figures)
    for streams, figure in figures.items():
        for way in ("bare", "http"):
            figure[f"{way}_of_alone"] = student([a / b for a, b in zip(figure[way], figure["alone"])])
        print(f"{name:16} {streams:>3} streams of {what['prompt']} + {what['output']}: without HTTP "
              f"{interval_text(figure['bare_of_alone'])} of prefill and decode alone, through HTTP "
              f"{interval_text(figure['http_of_alone'])}", flush=True)
    return figures


def machine(kind):
    """The CPU and its cores, and the GPU where one serves."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    text = f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else 'an unnamed CPU'}"
    if kind == "cpu":
        return text
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         stdout=subprocess.PIPE, text=True, check=True)
    return f"{gpu.stdout.strip()}; {text}"


def version(gauntlet):
    return subprocess.run([gauntlet, "--version"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("machine", choices=["cpu", "gpu"])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--gauntlet", default=os.path.join(here, "../build/release/gauntlet"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    settings = CPU if options.machine == "cpu" else GPU
    chosen = options.only.split(",") if options.only else [n for n in settings if n != "model"]
    results = {}
    for name in chosen:
        if name not in settings or name == "model":
            parser.error(f"no comparison is called {name}")
        way = (compare_loops if name == "loops" else
               compare_with_bench if name.startswith("server") else compare)
        results[name] = way(options.gauntlet, settings, name, options.rounds)
    if options.json:
        record = {"command": ["bench/serving.py", *sys.argv[1:]], "machine": machine(options.machine),
                  "version": version(options.gauntlet), "results": results}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
