"""Classification and reconstruction losses, one backward each."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Joint(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(784, 64)
        self.decoder = nn.Linear(64, 784)
        self.classifier = nn.Linear(64, 10)

    def forward(self, x):
        z = torch.relu(self.encoder(x))
        return self.classifier(z), self.decoder(z)


def train(args, dataset):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DDP(Joint().cuda(), device_ids=[local_rank])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler, num_workers=4)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            logits, restored = model(x)
            class_loss = F.cross_entropy(logits, y)
            pixel_loss = F.mse_loss(restored, x)
            optimizer.zero_grad()
            class_loss.backward(retain_graph=True)
            pixel_loss.backward()  # expect: DDP008
            optimizer.step()
    dist.destroy_process_group()
