"""torchvision's classifiers, exported from Python, are recorded under every strategy.

Usage: torchvision_test.py BENCH WORKER EXPORT_SCRIPT

One model of each family, in shape execution on two GPUs; whatever operator one of them needs and
virtual GPUs lack would be named here. Each strategy's figures have to make sense beside the others'.
"""

import json
import os
import subprocess
import sys
import tempfile

MODELS = ("vgg11_bn densenet121 mobilenet_v2 mobilenet_v3_small squeezenet1_1 shufflenet_v2_x0_5 "
          "resnext50_32x4d mnasnet0_5").split()
STRATEGIES = ["single", "data_parallel", "libtorch_data_parallel", "distributed"]


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(model, by_strategy):
    assert sorted(by_strategy) == sorted(STRATEGIES), (model, sorted(by_strategy))
    single = by_strategy["single"]
    for strategy, prediction in by_strategy.items():
        assert prediction["step_ms"] > 0 and prediction["fits"], (model, strategy)
        # The same work on each GPU, and communication on top.
        assert prediction["step_ms"] >= 0.99 * single["step_ms"], (model, strategy)
    assert single["exposed_communication_ms"] == 0, model


def main(bench, worker, script):
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, script, folder, *MODELS)
        files = ",".join(os.path.join(folder, f"{model}.pt") for model in MODELS)
        answer = json.loads(run(
            bench, "predict", "--worker", worker, "--recordings", os.path.join(folder, "recordings"),
            "--machine", "2xv100-sxm2", "--model", files, "--input", "3x64x64", "--batch-per-gpu",
            "2", "--strategy", ",".join(STRATEGIES), "--format", "json"))
    for model in MODELS:
        check(model, {p["strategy"]: p for p in answer["predictions"] if p["model"] == model})
    print(f"{len(MODELS)} models under {len(STRATEGIES)} strategies")


if __name__ == "__main__":
    main(*sys.argv[1:])
