#!/usr/bin/env python3
"""Runs targets of the catalogue on this machine's CPU and keeps their comparisons as a record.

usage: targets.py [--gauntlet FILE] [--json FILE] TARGET...
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(gauntlet, targets):
    with tempfile.TemporaryDirectory() as folder:
        code = subprocess.run([gauntlet, "run", "--targets", *targets, "--backend", "cpu", "--profile",
                               "minimal", "--artifacts-dir", folder]).returncode
        if code:
            sys.exit(code)
        found = [entry.path for entry in os.scandir(folder) if entry.is_dir()]
        with open(os.path.join(found[0], "results.json")) as file:
            return json.load(file)


def main():
    arguments = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    arguments.add_argument("targets", nargs="+")
    here = os.path.dirname(os.path.abspath(__file__))
    arguments.add_argument("--gauntlet", default=os.path.join(here, "../build/release/gauntlet"))
    arguments.add_argument("--json")
    given = arguments.parse_args()
    results = run(given.gauntlet, given.targets)
    record = {
        "command": ["bench/targets.py", *sys.argv[1:]],
        "machine": results["machine"]["cpu"]["model"],
        "version": "{version} ({commit})".format(**results["build"]),
        "results": {
            result["id"]: {
                "status": result["status"],
                "reason": result["reason"],
                "comparisons": [{key: comparison[key] for key in ("kind", "from", "to", "speedup")}
                                for comparison in result["comparisons"]]}
            for result in results["results"]}}
    if given.json:
        with open(given.json, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
