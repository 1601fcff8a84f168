"""bench calibrate measures this CPU for real: usage: calibrate_test.py BENCH BENCH_WORKER FOLDER

Two devices, so that the all-reduce between processes runs as well. Times of a busy machine are not
judged here, only that the whole way works: measured, fitted, written, read, predicted from.
"""

import json
import os
import shutil
import subprocess
import sys


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=400)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main(bench, worker, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    machine = os.path.join(folder, "machine.toml")
    samples = os.path.join(folder, "samples.json")
    run(bench, "calibrate", "--device", "cpu", "--gpus", "0,1", "--quick", "--out", machine,
        "--save-samples", samples, "--worker", worker)
    with open(samples, encoding="utf-8") as file:
        measured = json.load(file)
    assert measured["device_kind"] == "cpu" and measured["launch_ns"] > 0, measured["launch_ns"]
    names = {operation["name"] for operation in measured["operations"]}
    assert {"aten::convolution", "aten::convolution_backward", "aten::addmm"} <= names, names
    assert all(operation["ns"] > 0 for operation in measured["operations"])
    sizes = [size for size, _ in measured["all_reduce"]]
    assert sizes == sorted(sizes) and len(sizes) > 4, sizes
    assert measured["notes"] == [], measured["notes"]
    answer = json.loads(run(bench, "predict", "--machine", machine, "--model", "resnet18", "--input",
                            "3x64x64", "--batch-per-gpu", "2", "--strategy", "single,ddp",
                            "--format", "json", "--recordings", os.path.join(folder, "recordings"),
                            "--worker", worker))
    for prediction in answer["predictions"]:
        assert prediction["step_ms"] > 1, prediction
        assert "kernels from figures that are measured" in prediction["error_band"]["reason"]
    assert [p["gpus"] for p in answer["predictions"]] == [1, 2], answer["predictions"]


if __name__ == "__main__":
    main(*sys.argv[1:])
