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

# A comparison: two servers (off first), one load, one figure of its JSON.
CPU = {
    "model": [],
    "batching": {
        "off": ["--batching", "static", "--static-batch", "8"],
        "on": ["--batching", "continuous"],
        "load": ["--sweep", "rate=1..64", "--duration", "12", "--warmup", "8", "--prompt-tokens",
                 "lognormal:128,0.8,1024", "--output-tokens", "lognormal:64,0.8,512", "--slo",
                 "ttft=1,tpot=0.05"],
        "figure": "goodput", "better": "higher"},
    "chunked_prefill": {
        "off": ["--chunked-prefill", "off", "--max-batch-tokens", "2048"],
        "on": ["--chunked-prefill", "on", "--max-batch-tokens", "64"],
        "load": ["--rate", "6", "--requests", "60", "--warmup", "4", "--prompt-tokens",
                 "uniform:1024..1536", "--output-tokens", "128"],
        "figure": "itl_p95", "better": "lower"},
    "prefix_cache": {
        "off": ["--prefix-cache", "off"],
        "on": ["--prefix-cache", "on"],
        "load": ["--rate", "3", "--requests", "60", "--warmup", "8", "--prompt-tokens", "32",
                 "--shared-prefix", "4:1024:80%", "--output-tokens", "16"],
        "figure": "ttft_median", "better": "lower"},
    "server": {"streams": 16, "prompt": 32, "output": 256, "requests": 48, "context": 128},
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
    "server": {"streams": 256, "prompt": 1024, "output": 1024, "requests": 384, "context": 1536,
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
    middle = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{name:16} on is {middle:.2f} times better"
          f" (rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)})", flush=True)
    return {"figures": figures, "ratios": ratios, "ratio": middle}


def compare_with_bench(gauntlet, settings, rounds):
    """A closed loop through HTTP, client included, beside the bare engine at the same batch."""
    what = settings["server"]
    ratios, served, bare = [], [], []
    for _ in range(rounds):
        streams = str(what["streams"])
        arguments = ["--concurrency", streams, "--requests", str(what["requests"]), "--warmup",
                     streams, "--prompt-tokens", str(what["prompt"]), "--output-tokens",
                     str(what["output"])]
        if "vocab" in what:
            arguments += ["--vocab", what["vocab"]]
        with Server(gauntlet, settings["model"] + ["--max-sequences", streams]) as server:
            point = load(gauntlet, server.url, arguments)["points"][0]
        rate = (point["steady"] or point)["output_tokens_per_s"]
        bench = subprocess.run(
            [gauntlet, "bench", *settings["model"], "--batch", streams, "--context",
             str(what["context"]), "--decode", "64", "--prefill", str(what["prompt"]),
             "--activations", "auto", "--format", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if bench.returncode != 0:
            sys.exit(f"serving.py: bench failed: {bench.stderr}")
        rows = {row["test"]: row["tok_s"]["median"] for row in json.loads(bench.stdout)["rows"]}
        # What the engine alone would need for a request: its prompt, then its tokens.
        alone = what["output"] / (what["prompt"] / rows["prefill"] + what["output"] / rows["decode"])
        served.append(rate["value"])
        bare.append(alone)
        ratios.append(rate["value"] / alone)
        print(f"server           {streams} streams of {what['prompt']} + {what['output']}: "
              f"{interval_text(rate)} output tok/s through HTTP; the engine alone "
              f"{alone:.0f} (decode {rows['decode']:.0f}, prefill {rows['prefill']:.0f}): "
              f"{100 * ratios[-1]:.0f}%", flush=True)
    return {"served": served, "bare": bare, "ratios": ratios}


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
        results[name] = (compare_with_bench(options.gauntlet, settings, options.rounds)
                         if name == "server" else
                         compare(options.gauntlet, settings, name, options.rounds))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
