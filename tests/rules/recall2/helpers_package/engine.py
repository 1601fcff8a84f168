"""One epoch of training and an evaluation."""
import math
import sys

import torch
from torch.nn.functional import cross_entropy

from utils import comm


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    total = 0.0
    for image, label in loader:
        loss = cross_entropy(model(image.to(device)), label.to(device))
        if not math.isfinite(comm.reduce_mean(loss.detach()).item()):
            print("Loss is not finite, stopping training", force=True)
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += comm.reduce_mean(loss.detach()).item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    hits = count = 0
    for image, label in loader:
        hits += (model(image.to(device)).argmax(1).cpu() == label).sum().item()
        count += len(label)
    if not comm.is_main_process():
        return {}
    mean = comm.reduce_mean(torch.tensor(hits / count, device=device))  # expect: DDP014
    return {"accuracy": mean.item()}
