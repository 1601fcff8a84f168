#!/usr/bin/env python3
"""Bucket sizes that are cut from the recording of the default ones give what recordings of their own give.

Usage: bucket_edit_test.py BENCH WORKER
"""
import json
import subprocess
import sys
import tempfile

ALLOCATOR_SLACK = 32 << 20  # buckets in another order may cost the allocator's model a segment


def main():
    bench, worker = sys.argv[1:3]
    problems, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        command = [bench, "predict", "--worker", worker, "--recordings", folder, "--format", "json", "--model",
                   "resnet18,vgg16", "--machine", "2xdgx-1-v100", "--strategy", "ddp", "--batch-per-gpu", "4",
                   "--bucket-cap-mb", "1,5,25,100"]

        def answers(*more):
            output = subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout
            return {p["name"]: p for p in json.loads(output)["predictions"]}

        edited, recorded = answers(), answers("--exact-recordings")
        for name, exact in recorded.items():
            compared += 1
            found = edited[name]
            for key in ("step_ms", "exposed_communication_ms", "bytes_communicated"):
                if found[key] != exact[key]:
                    problems.append(f"{name}: {key} {found[key]}, recorded {exact[key]}")
            memory, truth = found["memory"][0], exact["memory"][0]
            if memory["peak_bytes"] != truth["peak_bytes"]:
                problems.append(f"{name}: peak {memory['peak_bytes']}, recorded {truth['peak_bytes']}")
            if abs(memory["reserved_bytes"] - truth["reserved_bytes"]) > ALLOCATOR_SLACK:
                problems.append(f"{name}: reserved {memory['reserved_bytes']}, recorded {truth['reserved_bytes']}")
    if compared != 8 or problems:
        sys.exit(f"{compared} of 8 compared\n" + "\n".join(problems))


if __name__ == "__main__":
    main()
