#!/usr/bin/env python3
"""Runs built-in scenarios with real workers and expects the rules of the pitfalls to be silent:
nothing in them is a mistake.

Usage: clean_scenarios_test.py BENCH WORKER OUT SCENARIO...
"""
import json
import os
import subprocess
import sys


def findings_of(bench, worker, out, scenario):
    here = os.path.join(out, scenario)
    done = subprocess.run([bench, "--scenario", scenario, "--device", "vgpu",
                           "--worker", worker, "--out", here],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return [f"{scenario}: exit code {done.returncode}\n{done.stderr[-3000:]}"]
    with open(os.path.join(here, "results.json"), encoding="utf-8") as f:
        cases = json.load(f)["benchmarks"]
    judged = [case for case in cases if "error_message" not in case]
    print(f"{scenario}: {len(judged)} of {len(cases)} cases judged", flush=True)
    if not judged:
        return [f"{scenario}: no case was run"]
    return [f"{case['name']}: {case['bench']['facts']['findings']}" for case in judged
            if "findings" in case["bench"]["facts"]]


def main():
    bench, worker, out, *scenarios = sys.argv[1:]
    problems = []
    for scenario in scenarios:
        problems += findings_of(bench, worker, out, scenario)
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
