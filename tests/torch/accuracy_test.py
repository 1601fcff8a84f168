#!/usr/bin/env python3
"""docs/accuracy.md is what `bench validate` prints, and the errors are within the product's targets.

Usage: accuracy_test.py BENCH WORKER PAGE. BENCH_UPDATE_GOLDEN=1 rewrites the page's generated section;
BENCH_MODELS=DIR (TorchScript files, scripts/export_torchvision.py) with it the exported one as well.
"""
import json
import os
import subprocess
import sys
import tempfile

MEAN_TARGET, WORST_TARGET, HELD_OUT_TARGET, UNANCHORED_TARGET = 0.05, 0.20, 0.08, 0.15
UNSEEN_TARGET, COLLECTIVE_TARGET, ROUNDED = 0.08, 0.07, 0.01


def section(page, name):
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    start = page.index(begin) + len(begin)
    return start, page.index(end, start)


def main():
    bench, worker, path = sys.argv[1:4]

    def validate(recordings, *more):
        command = [bench, "validate", "--worker", worker, "--recordings", recordings, *more]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with open(path, encoding="utf-8") as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as folder:
        printed = validate(folder, "--format", "markdown")
        figures = json.loads(validate(folder, "--format", "json"))
        if os.environ.get("BENCH_UPDATE_GOLDEN"):
            start, end = section(page, "generated")
            page = page[:start] + printed + page[end:]
            if os.environ.get("BENCH_MODELS"):
                start, end = section(page, "exported")
                kept = os.environ.get("BENCH_RECORDINGS", folder)
                more = validate(kept, "--models", os.environ["BENCH_MODELS"], "--format", "markdown")
                page = page[:start] + more.replace("### Every row", "### Every row, exported ones too") + page[end:]
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
    start, end = section(page, "generated")
    if page[start:end] != printed:
        sys.exit(f"{path} is not what bench validate prints; BENCH_UPDATE_GOLDEN=1 rewrites it")
    total = next(s for s in figures["summary"] if s["group"] == "all")
    problems = []
    if total["rows"] < 70:
        problems.append(f"only {total['rows']} rows")
    if total["mean_error"] > MEAN_TARGET or total["worst_error"] > WORST_TARGET:
        problems.append(f"mean {total['mean_error']:.3f}, worst {total['worst_error']:.3f}")
    if total["mean_unanchored_ratio_error"] > UNANCHORED_TARGET:
        problems.append(f"without an anchor {total['mean_unanchored_ratio_error']:.3f}")
    for held in figures["held_out"]:
        if held["mean_error"] > HELD_OUT_TARGET:
            problems.append(f"{held['group']} left out: {held['mean_error']:.3f}")
    unseen = next(s for s in figures["unseen"] if s["group"] == "all")
    if unseen["rows"] < 10 or unseen["mean_error"] > UNSEEN_TARGET:
        problems.append(f"unseen: {unseen['rows']} rows, mean {unseen['mean_error']:.3f}")
    ratios = figures["ratios"]
    untuned = [abs(ratio["error"]) for ratio in ratios if not ratio["tuned"]]
    if sum(untuned) > HELD_OUT_TARGET * len(untuned) or any(abs(r["error"]) > WORST_TARGET for r in ratios):
        problems.append("runs over one another: " + ", ".join(f"{r['side']}: {r['error']:.3f}" for r in ratios))
    for band in figures["bands"]:
        if band["p90"] > band["used"] + ROUNDED:
            problems.append(f"{band['class']}: nine in ten within {band['p90']:.3f}, printed {band['used']}")
    for check in figures["collectives"]:
        if check["method"].startswith("interpolated") and check["mean_error"] > COLLECTIVE_TARGET:
            problems.append(f"{check['curve']}: {check['mean_error']:.3f}")
    if problems:
        sys.exit("beyond the targets: " + "; ".join(problems))


if __name__ == "__main__":
    main()
