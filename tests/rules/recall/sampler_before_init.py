"""The sampler is built before the process group."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

BATCH_SIZE = 128
EPOCHS = 20


def prepare_data():
    train_set = datasets.CIFAR10("data", train=True, transform=transforms.ToTensor())
    sampler = DistributedSampler(train_set)  # expect: DDP005
    return DataLoader(train_set, batch_size=BATCH_SIZE, sampler=sampler, num_workers=4), sampler


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    loader, sampler = prepare_data()
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))
    model = DDP(model.cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = loss_fn(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
