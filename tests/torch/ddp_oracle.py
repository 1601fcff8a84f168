"""What Python's DistributedDataParallel does with the models of strategy_python_test.cpp.

ddp_oracle.py DIR writes DIR/ddp.json: the losses of ten steps on two ranks (Gloo, CPU), and the
bucket sizes of a stack of linear layers under several options. Both sides fill weights and batches
from the same generators, so no weights travel.
"""

import json
import pathlib
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torchvision
from torch.nn.parallel import DistributedDataParallel

from model_oracle import fill, seeded_normal

WORLD, BATCH, STEPS = 2, 8, 10
CLASSES = 1000
BUCKET_OPTIONS = {
    "default": {},
    "cap_25": {"bucket_cap_mb": 25},
    "cap_5": {"bucket_cap_mb": 5},
    "find_unused": {"find_unused_parameters": True},
    "static_graph": {"static_graph": True},
}


def mlp():
    return torch.nn.Linear(1280, 640), [1280], torch.nn.functional.mse_loss


def resnet18():
    return torchvision.models.resnet18(), [3, 64, 64], torch.nn.functional.cross_entropy


def ten_steps(rank, constructor):
    model, shape, loss_function = constructor()
    fill(model)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    share = slice(rank * BATCH // WORLD, (rank + 1) * BATCH // WORLD)
    losses = []
    for step in range(STEPS):
        inputs = seeded_normal([BATCH] + shape, 500 + step)
        if loss_function is torch.nn.functional.mse_loss:
            targets = seeded_normal([BATCH, 640], 900 + step)
        else:
            targets = torch.arange(BATCH) * 3 % CLASSES
        optimizer.zero_grad()
        loss = loss_function(model(inputs[share]), targets[share])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def bucket_sizes(options):
    stack = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(16)])
    model = DistributedDataParallel(stack, **options)
    for _ in range(4):
        model(torch.ones(1, 1024)).sum().backward()
    data = model._get_ddp_logging_data()
    sizes = {}
    for key in ("bucket_sizes", "rebuilt_bucket_sizes"):
        text = data.get(key, "")
        sizes[key] = [int(size) for size in text.split(",")] if text else []
    return sizes


def run_rank(rank, store, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    result = {"mlp": ten_steps(rank, mlp), "resnet18": ten_steps(rank, resnet18)}
    buckets = {name: bucket_sizes(options) for name, options in BUCKET_OPTIONS.items()}
    queue.put((rank, result, buckets))
    dist.destroy_process_group()


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    queue = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(run_rank, args=(scratch + "/store", queue), nprocs=WORLD)
    ranks = {}
    for _ in range(WORLD):
        rank, losses, buckets = queue.get()
        ranks[rank] = losses
    losses = {name: [ranks[rank][name] for rank in range(WORLD)] for name in ("mlp", "resnet18")}
    (directory / "ddp.json").write_text(json.dumps({"losses": losses, "buckets": buckets}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
