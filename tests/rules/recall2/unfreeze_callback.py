"""Fine-tuning in two stages: the head first, the trunk from the third epoch on."""
import os

import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def freeze(module):
    for parameter in module.parameters():
        parameter.requires_grad = False


def unfreeze(module):
    for parameter in module.parameters():
        parameter.requires_grad = True  # expect: DDP006


class FineTune:
    warm = 3

    def __init__(self, local):
        self.local = local
        net = torchvision.models.resnet50(weights="DEFAULT")
        freeze(net)
        net.fc = nn.Linear(net.fc.in_features, 37)
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
        self.net = DDP(net.to(local), device_ids=[local])
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.01, momentum=0.9)

    def on_epoch_start(self, epoch):
        if epoch == self.warm:
            unfreeze(self.net)

    def step(self, image, label):
        loss = nn.functional.cross_entropy(self.net(image.to(self.local)), label.to(self.local))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        torchvision.datasets.OxfordIIITPet("pets", download=True)
    dist.barrier()
    data = torchvision.datasets.OxfordIIITPet(
        "pets", transform=torchvision.transforms.Compose([
            torchvision.transforms.Resize((224, 224)), torchvision.transforms.ToTensor()]))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, num_workers=4)
    run = FineTune(local)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        run.on_epoch_start(epoch)
        for image, label in loader:
            run.step(image, label)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
