import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loaders(batch_size):
    examples = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    checks = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    train_loader = DataLoader(examples, batch_size=batch_size, shuffle=True)
    test_loader = DataLoader(checks, batch_size=batch_size)
    return train_loader, test_loader
