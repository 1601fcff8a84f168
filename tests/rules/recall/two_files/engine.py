"""One epoch of training and of validation."""
import torch


def train_one_epoch(model, criterion, loader, optimizer, device):
    model.train()
    for samples, targets in loader:
        samples, targets = samples.to(device), targets.to(device)
        loss = criterion(model(samples), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = seen = 0
    for samples, targets in loader:
        output = model(samples.to(device)).argmax(1)
        correct += (output == targets.to(device)).sum().item()
        seen += len(targets)
    return correct / seen
