#!/usr/bin/env python3
"""Runs built-in scenarios with real workers and expects the rules of the pitfalls to be silent:
nothing in them is a mistake.

Usage: clean_scenarios_test.py BENCH WORKER OUT SCENARIO...
BENCH_LABORATORY_SEEDS=20 repeats them for as many seeds (default 1).
"""
import json
import os
import shutil
import subprocess
import sys


def findings_of(bench, worker, out, scenario, seed):
    here = os.path.join(out, f"seed{seed}", scenario)
    shutil.rmtree(here, ignore_errors=True)  # of an earlier run
    done = subprocess.run([bench, "--scenario", scenario, "--device", "vgpu", "--seed", str(seed),
                           "--worker", worker, "--out", here],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return [f"{scenario}, seed {seed}: exit code {done.returncode}\n{done.stderr[-3000:]}"]
    with open(os.path.join(here, "results.json"), encoding="utf-8") as f:
        cases = json.load(f)["benchmarks"]
    judged = [case for case in cases if "error_message" not in case]
    print(f"{scenario}, seed {seed}: {len(judged)} of {len(cases)} cases judged", flush=True)
    if not judged:
        return [f"{scenario}, seed {seed}: no case was run"]
    return [f"{case['name']}, seed {seed}: {case['bench']['facts']['findings']}" for case in judged
            if "findings" in case["bench"]["facts"]]


def main():
    bench, worker, out, *scenarios = sys.argv[1:]
    problems = []
    for seed in range(1, int(os.environ.get("BENCH_LABORATORY_SEEDS", "1")) + 1):
        for scenario in scenarios:
            problems += findings_of(bench, worker, out, scenario, seed)
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
