"""The scripts that `bench diagnose --to-ddp` writes (tests/rules/to_ddp/*.ddp.py) train: two ranks
run each of them with PyTorch's own DDP and DistributedSampler over gloo on the CPU. Every call that
would need a GPU is sent to the CPU, nothing else is changed. Checked: both ranks end with the same
parameters, these have moved, each rank makes as many steps as the DataParallel script does, and
the two together see every example once an epoch.

usage: to_ddp_test.py DIRECTORY
"""
import json
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile

WORLD_SIZE = 2
EPOCHS = 2
EXAMPLES = 64
STEPS = 8  # 64 examples in batches of 16, twice


def run_rank(script, directory):
    """In the process of one rank, or of the script as it was (RANK unset)."""
    import torch
    import torch.distributed as dist
    from torch import nn

    def on_cpu(method):
        return lambda self, *args, **kwargs: self if is_device(args) else method(self, *args, **kwargs)

    def is_device(args):
        return not args or isinstance(args[0], (int, torch.device)) or str(args[0]).startswith("cuda")

    for kind in (nn.Module, torch.Tensor):
        kind.to = on_cpu(kind.to)
        kind.cuda = lambda self, *args: self
    torch.cuda.set_device = lambda index: taken.append(index)
    torch.cuda.current_device = lambda: taken[-1]
    torch.cuda.is_available = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: False  # an optimizer asks where there is a GPU
    join = dist.init_process_group
    dist.init_process_group = lambda backend: join(
        "gloo", init_method=f"file://{directory}/rendezvous", rank=int(os.environ["RANK"]),
        world_size=WORLD_SIZE)
    wrap = nn.parallel.DistributedDataParallel.__init__

    def wrap_on_cpu(self, module, device_ids, **options):
        assert device_ids == [int(os.environ["LOCAL_RANK"])], device_ids
        wrap(self, module, **options)
        models.append(module)
        before.append([p.detach().clone() for p in module.parameters()])

    def wrap_alone(self, module, device_ids=None):
        nn.Module.__init__(self)
        self.module, self.device_ids = module, []

    nn.parallel.DistributedDataParallel.__init__ = wrap_on_cpu
    nn.DataParallel.__init__ = wrap_alone
    taken, models, before, rows = [], [], [], []
    for kind in (nn.parallel.DistributedDataParallel, nn.DataParallel):
        forward = kind.forward

        def count(self, *inputs, forward=forward):
            if self.training and len(list(self.parameters())) > 0:
                rows.append(len(inputs[0]))
            return forward(self, *inputs)

        kind.forward = count
    sys.argv = [script]
    sys.path.insert(0, os.path.dirname(script))
    os.chdir(directory)
    runpy.run_path(script, run_name="__main__")
    out = {"steps": len(rows), "rows": sum(rows)}
    if models:
        now = [[p.detach() for p in model.parameters()] for model in models]
        out["parameters"] = [p.flatten().tolist() for model in now for p in model]
        out["moved"] = all(any(not torch.equal(a, b) for a, b in zip(*pair)) for pair in zip(before, now))
        out["device"] = taken
    print(json.dumps(out))


def start(script, directory, rank=None):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if rank is not None:
        environment.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD_SIZE))
    return subprocess.Popen([sys.executable, __file__, "--rank", str(script), directory],
                            env=environment, stdout=subprocess.PIPE, text=True)


def answer(process):
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0, f"{process.args} ended with {process.returncode}"
    return json.loads(out.strip().splitlines()[-1])


def check(script, passes=1):
    """`passes` forward passes of wrapped models make a step."""
    with tempfile.TemporaryDirectory() as directory:
        as_it_was = answer(start(script, directory))
    assert as_it_was["steps"] == STEPS * passes, as_it_was
    assert as_it_was["rows"] == EXAMPLES * EPOCHS * passes, as_it_was
    if script.name == "train.py":  # the files that did not change are those of the project
        rewritten = pathlib.Path(shutil.copytree(script.parent, tempfile.mkdtemp() + "/project"))
        shutil.copytree(f"{script.parent}.ddp", rewritten, dirs_exist_ok=True)
        rewritten = rewritten / "train.py"
    else:
        rewritten = script.with_suffix(".ddp.py")
    with tempfile.TemporaryDirectory() as directory:
        ranks = [answer(each) for each in [start(rewritten, directory, r) for r in range(WORLD_SIZE)]]
    for rank, result in enumerate(ranks):
        assert result["steps"] == STEPS * passes, (rank, result["steps"])
        assert set(result["device"]) == {rank}, result["device"]
        assert result["moved"], rank
    assert ranks[0]["parameters"] == ranks[1]["parameters"], "the ranks have drifted apart"
    assert sum(r["rows"] for r in ranks) == EXAMPLES * EPOCHS * passes, [r["rows"] for r in ranks]


def main():
    directory = pathlib.Path(sys.argv[1]).resolve()
    # The networks of looked_up are found by a name: one pass of the generator, three of the other.
    for name, passes in (("one_level.py", 1), ("main_function.py", 1), ("trainer_class.py", 1),
                         ("project/train.py", 1), ("looked_up/train.py", 4)):
        check(directory / name, passes)
        print(f"{name}: {WORLD_SIZE} ranks, {STEPS} steps each, one model")


if __name__ == "__main__":
    run_rank(sys.argv[2], sys.argv[3]) if sys.argv[1] == "--rank" else main()
