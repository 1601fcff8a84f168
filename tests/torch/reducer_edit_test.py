#!/usr/bin/env python3
"""Options of DDP's Reducer that are edited into the recording of the default ones give what recordings of their own give.

Usage: reducer_edit_test.py BENCH WORKER
"""
import json
import pathlib
import subprocess
import sys
import tempfile

CAPS_MB = [1, 5, 25, 100]
ALLOCATOR_SLACK = 32 << 20  # buckets in another order may cost the allocator's model a segment
OPTIONS = {
    "views": ["--gradient-as-bucket-view"],
    "static": ["--static-graph"],
    "unused": ["--find-unused-parameters"],
    "views, unused, 5 MiB": ["--gradient-as-bucket-view", "--find-unused-parameters", "--bucket-cap-mb", "5"],
    "views, static, adam": ["--gradient-as-bucket-view", "--static-graph", "--optimizer", "adam"],
}


SWEEPS = {"buckets": (["--model", "resnet18,vgg16", "--bucket-cap-mb", ",".join(map(str, CAPS_MB))], ALLOCATOR_SLACK)}
SWEEPS |= {what: (["--model", "resnet18,densenet121,mlp,gpt2", *options], 0) for what, options in OPTIONS.items()}
# Five models with SGD, four with Adam; the loss of mlp reads its output in backward, so that its search for unused
# parameters is recorded, twice.
RECORDINGS = 5 + 4 + 2


class Sweeps:
    def __init__(self, bench, worker, folder):
        self.command = [bench, "predict", "--worker", worker, "--recordings", folder, "--format", "json", "--machine",
                        "2xdgx-1-v100", "--strategy", "ddp", "--batch-per-gpu", "4"]

    def answers(self, *more):
        found = {}
        for what, (options, _) in SWEEPS.items():
            output = subprocess.run([*self.command, *options, *more], check=True, capture_output=True, text=True).stdout
            found |= {(what, p["name"]): p for p in json.loads(output)["predictions"]}
        return found


def differences(found, exact, slack):
    for key in ("step_ms", "exposed_communication_ms", "bytes_communicated"):
        if found[key] != exact[key]:
            yield f"{key} {found[key]}, recorded {exact[key]}"
    memory, truth = found["memory"][0], exact["memory"][0]
    if memory["peak_bytes"] != truth["peak_bytes"]:
        yield f"peak {memory['peak_bytes']}, recorded {truth['peak_bytes']}"
    if abs(memory["reserved_bytes"] - truth["reserved_bytes"]) > slack:
        yield f"reserved {memory['reserved_bytes']}, recorded {truth['reserved_bytes']}"


def main():
    bench, worker = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        sweeps = Sweeps(bench, worker, folder)
        edited = sweeps.answers()
        recordings = len(list(pathlib.Path(folder).glob("*-distributed-*.graph")))
        recorded = sweeps.answers("--exact-recordings")
    problems = [f"{case}: {text}" for case, exact in recorded.items()
                for text in differences(edited[case], exact, SWEEPS[case[0]][1])]
    if recordings != RECORDINGS:
        problems.append(f"{recordings} recordings instead of {RECORDINGS}")
    if len(recorded) != 2 * len(CAPS_MB) + 4 * len(OPTIONS) or problems:
        sys.exit(f"{len(recorded)} compared\n" + "\n".join(problems))


if __name__ == "__main__":
    main()
