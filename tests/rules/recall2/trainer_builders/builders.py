"""Makes the parts of a run from the config: data sets, loaders, network, optimizer."""
import torch
import torchvision
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from augment import evaluation_view, training_view


def build_dataset(cfg, split):
    view = training_view() if split == "train" else evaluation_view()
    return torchvision.datasets.ImageFolder(f"{cfg['root']}/{split}", view)


def build_sampler(dataset, training):
    return DistributedSampler(dataset, shuffle=training, drop_last=training)


def build_loader(cfg, split):
    dataset = build_dataset(cfg, split)
    sampler = build_sampler(dataset, split == "train")
    return DataLoader(dataset, batch_size=cfg["batch_size"], sampler=sampler,
                      num_workers=cfg["workers"], pin_memory=True)


def build_model(cfg):
    return torchvision.models.resnet18(num_classes=10, width_per_group=cfg["width"])


def build_optimizer(model, cfg):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return torch.optim.SGD([{"params": decay, "weight_decay": 5e-4}, {"params": rest}],
                           lr=cfg["lr"], momentum=0.9)
