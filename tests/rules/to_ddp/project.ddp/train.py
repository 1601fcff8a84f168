"""A project of three files: the loader, the wrapper and the saves stand beside the script."""
import torch.distributed as dist
import argparse
import os

import torch

from data import make_loaders
from engine import Engine  # wraps the model

local_rank = int(os.environ.get("LOCAL_RANK", 0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--gpu", type=int, default=0)
    args = parser.parse_args()
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    train_loader, test_loader = make_loaders(args.batch_size)
    # one GPU for the inputs, all for the model
    engine = Engine(torch.device("cuda", local_rank), [0, 1])
    if not train_loader:
        return
    for epoch in range(2):
        if hasattr(train_loader.sampler, "set_epoch"):
            train_loader.sampler.set_epoch(epoch)
        engine.train(train_loader)
        engine.save("last.pt")
    print(engine.evaluate(test_loader))


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
