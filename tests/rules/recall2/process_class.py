"""Starts its ranks with multiprocessing.Process and a try/finally around each."""
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SIZE = 2


def setup(rank: int, size: int, backend: str = "nccl") -> None:
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29501"
    dist.init_process_group(backend, rank=rank, world_size=size)
    torch.cuda.set_device(rank)


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad.data, op=dist.ReduceOp.SUM)
        parameter.grad.data /= dist.get_world_size()


def by_hand(rank: int, size: int) -> None:
    setup(rank, size)
    torch.manual_seed(1234)
    model = nn.Linear(16, 4).cuda()
    sgd = optim.SGD(model.parameters(), lr=0.01)
    shard = torch.randn(1000, 16, generator=torch.Generator().manual_seed(rank)).cuda()
    for x in shard.split(100):
        sgd.zero_grad()
        model(x).square().mean().backward()
        average_gradients(model)
        sgd.step()
    dist.destroy_process_group()


def wrapped(rank: int, size: int) -> None:
    setup(rank, size)
    try:
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
        model = DDP(model, device_ids=[rank])  # expect: DDP004
        data = TensorDataset(torch.randn(1000, 16))
        sampler = DistributedSampler(data, num_replicas=size, rank=rank)
        loader = DataLoader(data, 50, sampler=sampler)
        sgd = optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(4):
            sampler.set_epoch(epoch)
            for (x,) in loader:
                sgd.zero_grad()
                first = model(x.cuda())
                first.square().mean().backward(retain_graph=True)
                first.abs().mean().backward()  # expect: DDP008
                sgd.step()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    processes = []
    mp.set_start_method("spawn")
    for number in range(SIZE):
        process = mp.Process(target=wrapped, args=(number, SIZE))
        process.start()
        processes.append(process)
    for process in processes:
        process.join()
