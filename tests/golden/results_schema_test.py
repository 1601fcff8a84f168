#!/usr/bin/env python3
"""results/schema/results.schema.json accepts what the JSON renderer writes and refuses what is broken.

Usage: results_schema_test.py ROOT [results.json...]; further files must fit the schema, too.
"""
import copy
import json
import os
import sys

import jsonschema

GOLDEN = ["sweep.json", "nothing_finished.json"]


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def first(run, status):
    return next(b for b in run["benchmarks"] if b["bench"]["status"] == status)


# Each break takes a valid run and must make it invalid.
def no_context(run): del run["context"]["simulated"]
def newer_schema(run): run["context"]["schema_version"] = 2
def no_time(run): del first(run, "done")["real_time"]
def negative_fraction(run): first(run, "done")["comm_exposed"] = -0.1
def odd_name(run): first(run, "done")["name"] = "resnet50"
def unknown_category(run): first(run, "done")["bench"]["memory"][0]["by_category"]["magic"] = 1
def unknown_status(run): first(run, "done")["bench"]["status"] = "fine"
def silent_skip(run): first(run, "skipped")["skip_message"] = ""
def timed_skip(run): first(run, "skipped")["real_time"] = 1.0


BREAKS = {
    "sweep.json": [no_context, newer_schema, no_time, negative_fraction, odd_name, unknown_category, unknown_status],
    "nothing_finished.json": [silent_skip, timed_skip],
}


def main():
    root, extra = sys.argv[1], sys.argv[2:]
    schema = load(os.path.join(root, "results/schema/results.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    failures = []
    paths = [os.path.join(root, "tests/golden/expected", name) for name in GOLDEN] + extra
    for path in paths:
        run = load(path)
        for error in validator.iter_errors(run):
            failures.append(f"{path}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
        for break_it in BREAKS.get(os.path.basename(path), []):
            broken = copy.deepcopy(run)
            break_it(broken)
            if validator.is_valid(broken):
                failures.append(f"{path}: still valid after {break_it.__name__}")
    print("\n".join(failures) if failures else f"{len(paths)} files fit the schema")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
