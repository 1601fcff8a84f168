"""Transfer learning: the backbone is unfrozen after a few epochs."""
import os

import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

FREEZE_EPOCHS = 3


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad = flag


def main(cfg):
    dist.init_process_group(backend="nccl", init_method="env://")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    backbone = torchvision.models.resnet34(weights="DEFAULT")
    backbone.fc = nn.Linear(512, cfg["classes"])
    for name, p in backbone.named_parameters():
        p.requires_grad = name.startswith("fc.")
    backbone.cuda()
    model = nn.parallel.DistributedDataParallel(backbone, device_ids=[local_rank])
    data = torchvision.datasets.ImageFolder(cfg["root"], torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, cfg["batch"], sampler=sampler, num_workers=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    criterion = nn.CrossEntropyLoss()

    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        if epoch == FREEZE_EPOCHS:
            for p in model.parameters():
                p.requires_grad = True  # expect: DDP006
        model.train()
        for images, labels in loader:
            loss = criterion(model(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "transfer.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main({"classes": 20, "root": "pets", "batch": 32, "lr": 0.01, "epochs": 12})
