#!/usr/bin/env python3
"""Runs the whole pitfall laboratory with real workers: every mistake is reproduced, detected and
cured, no rule finds anything in a cured run, and what the pages quote is what the runs raised.

Usage: pitfall_laboratory_test.py ROOT BENCH WORKER OUT
BENCH_LABORATORY_SEEDS=20 repeats it for as many seeds (default 1).
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys


def run(bench, worker, out, seed):
    shutil.rmtree(out, ignore_errors=True)  # evidence of an earlier run
    done = subprocess.run([bench, "--scenario", "pitfalls", "--worker", worker, "--out", out,
                           "--seed", str(seed)], capture_output=True, text=True)
    with open(os.path.join(out, "results.json"), encoding="utf-8") as f:
        cases = json.load(f)["benchmarks"]
    problems = []
    for case in cases:
        missing = [v for v in ("reproduced", "detected", "cured") if case.get(v) != 1]
        if missing or "cost" not in case or not case.get("label"):
            problems.append(f"seed {seed}: {case['name']}: not {missing}, cost {case.get('cost')} "
                            f"{case.get('label')}: {json.dumps(case['bench']['facts'])}")
    if done.returncode != 0 and not problems:
        problems.append(f"seed {seed}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    return cases, problems


def collapsed(text):
    return re.sub(r"\s+", " ", text)


def quotes(page):
    """Quoted lines ("> ") of the section "Measured here", joined where they follow each other."""
    with open(page, encoding="utf-8") as f:
        section = f.read().split("\n## Measured here\n")[-1].split("\n## ")[0]
    return [collapsed(re.sub(r"^> ?", "", block, flags=re.M)).strip()
            for block in re.findall(r"(?:^> .*\n)+", section + "\n", flags=re.M)]


def check_quotes(root, out):
    problems, checked = [], 0
    for page in sorted(glob.glob(os.path.join(root, "scenarios/pitfalls/*.md"))):
        rule = os.path.basename(page).split("_", 1)[1][:-3].replace("_", "-")
        evidence = glob.glob(os.path.join(out, "evidence", f"{rule}.broken.json"))
        evidence += glob.glob(os.path.join(out, "evidence", f"{rule}_form-*.broken.json"))
        raised = ""
        for path in evidence:
            with open(path, encoding="utf-8") as f:
                document = json.load(f)
            raised += "\n".join([document.get("message", "")] +  # the last words of a process
                                [r.get("error", "") + "\n" + "\n".join(r.get("warnings", []))
                                 for r in document["ranks"]])
        for quote in quotes(page) if evidence else []:
            checked += 1
            # "..." leaves out what does not matter here.
            at = 0
            for part in quote.split("..."):
                at = collapsed(raised).find(part.strip(), at)
                if at < 0:
                    problems.append(f"{page}: quotes what no run raised: {part.strip()}")
                    break
    return checked, problems


def main():
    root, bench, worker, out = sys.argv[1:5]
    problems = []
    for seed in range(1, int(os.environ.get("BENCH_LABORATORY_SEEDS", "1")) + 1):
        here = os.path.join(out, f"seed{seed}")
        cases, found = run(bench, worker, here, seed)
        problems += found
        print(f"seed {seed}: {len(cases)} trials, {len(found)} problems", flush=True)
    checked, wrong = check_quotes(root, os.path.join(out, "seed1"))
    print(f"{checked} quotations checked")
    problems += wrong
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
