#!/usr/bin/env python3
"""What is edited into a recording gives what a recording of its own gives: options of DDP's Reducer into that of its
defaults, micro-batches and the broadcast of buffers into that of three micro-batches with it, batches into those of others.

Usage: step_edit_test.py BENCH WORKER reducer|steps|batches
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


NODES = ["--machine", "2xdgx-1-v100", "--strategy", "ddp"]
REDUCER = {"buckets": ([*NODES, "--batch-per-gpu", "4", "--model", "resnet18,vgg16", "--bucket-cap-mb",
                        ",".join(map(str, CAPS_MB))], ALLOCATOR_SLACK)}
REDUCER |= {what: ([*NODES, "--batch-per-gpu", "4", "--model", "resnet18,densenet121,mlp,gpt2", *options], 0)
            for what, options in OPTIONS.items()}

# The broadcast of buffers goes.
BUFFERS = {
    "no buffers": ["--broadcast-buffers=false"],
    "no buffers, views": ["--broadcast-buffers=false", "--gradient-as-bucket-view"],
    "no buffers, unused": ["--broadcast-buffers=false", "--find-unused-parameters"],
}
# Micro-batches of four samples each come from a step of three of them.
ACCUMULATED = {
    "": [],
    ", synchronised": ["--no-sync=false"],
    ", views, 5 MiB": ["--gradient-as-bucket-view", "--bucket-cap-mb", "5"],
    ", 5 MiB": ["--bucket-cap-mb", "5"],
    ", no buffers, synchronised": ["--broadcast-buffers=false", "--no-sync=false"],
}
MICRO_BATCHES = [2, 4, 7]
STRATEGIES = ["single", "data_parallel", "libtorch_data_parallel", "distributed"]

STEPS = {what: ([*NODES, "--batch-per-gpu", "4", "--model", "resnet18,gpt2", *options], 0)
         for what, options in BUFFERS.items()}
for count in MICRO_BATCHES:
    several = ["--accumulation", str(count), "--batch-per-gpu", str(4 * count)]
    STEPS |= {f"{count} micro-batches{what}": ([*NODES, *several, "--model", "resnet18", *options],
                                               ALLOCATOR_SLACK if "MiB" in what else 0)
              for what, options in ACCUMULATED.items()}
    STEPS[f"{count} micro-batches, strategies"] = (
        [*several, "--model", "mlp,densenet121", "--machine", "4xv100-sxm2", "--strategy", ",".join(STRATEGIES)], 0)

# Every batch comes from steps of 2, 512 and 1,024 samples, below, between and above them.
SAMPLES = [3, 17, 1500]
LAYERED = ["--machine", "8xv100-sxm2", "--gpu-counts", "3", "--batch-per-gpu", ",".join(map(str, SAMPLES))]
BATCHES = {
    "batches, strategies": ([*LAYERED, "--model", "mlp,resnet18,gpt2", "--strategy", ",".join(STRATEGIES)], 0),
    "batches, other models": ([*LAYERED, "--model", "vgg16,densenet121", "--strategy", "ddp"], 0),
    "batches, edited": ([*LAYERED, "--model", "resnet18", "--strategy", "ddp", "--optimizer", "adam",
                         "--gradient-as-bucket-view", "--bucket-cap-mb", "5", "--precision", "float16"], 0),
    "batches, accumulated": (["--machine", "8xv100-sxm2", "--gpu-counts", "3", "--batch-per-gpu", "8,20,44",
                              "--accumulation", "4", "--model", "resnet18", "--strategy", ",".join(STRATEGIES)], 0),
    "largest batch": (["--machine", "8xv100-sxm2", "--gpu-counts", "2", "--batch-per-gpu", "8", "--model", "resnet18",
                       "--strategy", "dp,ddp", "--max-batch"], 0),
}

# Sweeps, how many cases they are, and how many recordings of DDP they need.
# Reducer: five models with SGD, four with Adam; the loss of mlp reads its output in backward, so that its search for
# unused parameters is recorded, twice.
# Steps: two models without accumulation; of ResNet-18 the default, views, and without no_sync; two models more.
# Batches: three for each of five models, for Adam and for micro-batches; of the largest the batch itself, below two
# samples of it, and the rest from the three of the first sweep.
TABLES = {
    "reducer": (REDUCER, 2 * len(CAPS_MB) + 4 * len(OPTIONS), 5 + 4 + 2),
    "steps": (STEPS, 2 * len(BUFFERS) + len(MICRO_BATCHES) * (len(ACCUMULATED) + 2 * len(STRATEGIES)), 2 + 3 + 2),
    "batches": (BATCHES, len(SAMPLES) * (3 * len(STRATEGIES) + 2 + 1) + 3 * len(STRATEGIES) + 2, 3 * (3 + 2 + 1 + 1) + 1),
}


class Sweeps:
    def __init__(self, bench, worker, folder, table):
        self.command = [bench, "predict", "--worker", worker, "--recordings", folder, "--format", "json"]
        self.table = table

    def answers(self, *more):
        found = {}
        for what, (options, _) in self.table.items():
            output = subprocess.run([*self.command, *options, *more], check=True, capture_output=True, text=True).stdout
            found |= {(what, p["name"]): p for p in json.loads(output)["predictions"]}
        return found


def differences(found, exact, slack):
    for key in ("step_ms", "exposed_communication_ms", "bytes_communicated", "max_batch_per_gpu"):
        if found.get(key) != exact.get(key):
            yield f"{key} {found[key]}, recorded {exact[key]}"
    for memory, truth in zip(found["memory"], exact["memory"], strict=True):
        for key in ("peak_bytes", "by_category"):
            if memory[key] != truth[key]:
                yield f"{key} {memory[key]}, recorded {truth[key]}"
        if abs(memory["reserved_bytes"] - truth["reserved_bytes"]) > slack:
            yield f"reserved {memory['reserved_bytes']}, recorded {truth['reserved_bytes']}"


def main():
    bench, worker, name = sys.argv[1:4]
    table, cases, recordings = TABLES[name]
    with tempfile.TemporaryDirectory() as folder:
        sweeps = Sweeps(bench, worker, folder, table)
        edited = sweeps.answers()
        found = len(list(pathlib.Path(folder).glob("*-distributed-*.graph")))
        recorded = sweeps.answers("--exact-recordings")
    problems = [f"{case}: {text}" for case, exact in recorded.items()
                for text in differences(edited[case], exact, table[case[0]][1])]
    if found != recordings:
        problems.append(f"{found} recordings instead of {recordings}")
    if len(recorded) != cases or problems:
        sys.exit(f"{len(recorded)} compared, expected {cases}\n" + "\n".join(problems))


if __name__ == "__main__":
    main()
