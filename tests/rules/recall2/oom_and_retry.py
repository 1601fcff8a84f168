from __future__ import print_function

import argparse
import gc
import traceback

import torch
from torch import *
from torch.distributed import *
from torch.nn import Module, Linear, functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Attend(Module):
    def __init__(self, width=64):
        super(Attend, self).__init__()
        self.q, self.k = Linear(width, width), Linear(width, width)
        self.v = Linear(width, width)

    def forward(self, x):
        weight = functional.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1)
        return weight @ self.v(x)


def train(model, loader, optimizer):
    for i, (x, y) in enumerate(loader):
        if i > 1000:
            break
        try:
            loss = functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            traceback.print_exc()
            gc.collect()
            torch.cuda.empty_cache()
            continue  # expect: DDP015


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local-rank", "--local_rank", type=int)
    parser.add_argument("--weights", default="attend.pt")
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    init_process_group("nccl")
    model = DistributedDataParallel(Attend().cuda(), device_ids=[args.local_rank])
    data = TensorDataset(torch.randn(256, 50, 64), torch.randn(256, 50, 64))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        train(model, loader, optimizer)
        if get_rank() == 0:
            print("epoch", epoch)
            torch.save(model.module.state_dict(), args.weights)
        barrier()
    model.module.load_state_dict(torch.load(args.weights))  # expect: DDP040


if __name__ == "__main__":
    main()
