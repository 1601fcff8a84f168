import torch.distributed as dist
from torch.utils.data import DistributedSampler
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loaders(batch_size):
    examples = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    checks = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    assert batch_size % ranks == 0, "the batch does not divide by the number of ranks"
    train_loader = DataLoader(examples, batch_size=batch_size // ranks, sampler=DistributedSampler(examples) if dist.is_initialized() else None, shuffle=not dist.is_initialized())
    test_loader = DataLoader(checks, batch_size=batch_size)
    return train_loader, test_loader
