"""A download on rank 0 with the barrier on the wrong side."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Linear(32 * 13 * 13, 10)

    def forward(self, x):
        return self.head(self.features(x))


def is_main_process():
    return dist.get_rank() == 0


def load(root):
    if is_main_process():
        datasets.MNIST(root, download=True)
        dist.barrier()  # expect: DDP014
    return datasets.MNIST(root, transform=transforms.ToTensor())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    train_set = load("./mnist")
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=64, sampler=sampler, num_workers=2)
    model = DDP(Net().cuda(gpu), device_ids=[gpu])
    optimizer = optim.Adadelta(model.parameters())
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        running = torch.zeros(1, device=gpu)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x.cuda(gpu)), y.cuda(gpu))
            loss.backward()
            optimizer.step()
            running += loss.detach()
        if is_main_process():
            dist.all_reduce(running)  # expect: DDP014
            print(epoch, running.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
