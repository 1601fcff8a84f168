"""Writes checkpoints in the background with asyncio while training goes on."""
import asyncio
import os
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


async def write(state: dict, path: Path) -> None:
    temporary = path.with_suffix(".part")
    await asyncio.to_thread(torch.save, state, temporary)
    await asyncio.to_thread(shutil.move, temporary, path)


async def train(model: DDP, loader: DataLoader, local: int, folder: Path) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    pending: asyncio.Task | None = None
    for epoch in range(20):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(local)), y.to(local))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            await asyncio.sleep(0)
        total = loss.detach().clone()
        if dist.get_rank() == 0:
            dist.all_reduce(total)  # expect: DDP014
            print("loss", total.item() / dist.get_world_size())
            if pending is not None:
                await pending
            state = {k: v.cpu().clone() for k, v in model.module.state_dict().items()}
            pending = asyncio.create_task(write(state, folder / f"{epoch}.pt"))
    if pending is not None:
        await pending


def latest(folder: Path) -> Path | None:
    found = sorted(folder.glob("*.pt"), key=lambda path: int(path.stem))
    return found[-1] if found else None


def main() -> None:
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    folder = Path("checkpoints")
    folder.mkdir(exist_ok=True)
    net = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)).to(local)
    if (path := latest(folder)) is not None:
        net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    data = TensorDataset(torch.randn(1 << 16, 64), torch.randn(1 << 16, 1))
    loader = DataLoader(data, 256, sampler=DistributedSampler(data))
    asyncio.run(train(DDP(net, device_ids=[local]), loader, local, folder))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
