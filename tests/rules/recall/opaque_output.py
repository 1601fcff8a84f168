"""A result class of one's own with the unused search switched on."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Output:
    def __init__(self, logits, features):
        self.logits = logits
        self.features = features


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(32, 64)
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        features = torch.tanh(self.body(x))
        return Output(self.head(features), features)  # expect: DDP031


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    net = DDP(Net().cuda(), device_ids=[local_rank], find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    generator = torch.Generator("cuda").manual_seed(dist.get_rank())
    for _ in range(500):
        x = torch.randn(16, 32, device="cuda", generator=generator)
        loss = net(x).logits.logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
