"""An agent that keeps its wrapped network in an attribute."""
import os
from typing import Optional

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.encoder = nn.Linear(16, width)
        self.decoder = nn.Linear(width, 16)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.encoder(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encode(x))


class Agent:
    net: DistributedDataParallel

    def __init__(self, local: int, checkpoint: Optional[str] = None) -> None:
        self.device = torch.device("cuda", local)
        self.net = DistributedDataParallel(Net().to(self.device), device_ids=[local])
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        if checkpoint:
            self.restore(checkpoint)

    def restore(self, path: str) -> None:
        blob = torch.load(path, map_location=self.device)
        self.net.module.load_state_dict(blob["net"])
        self.optimizer.load_state_dict(blob["optimizer"])

    def learn(self, batch: torch.Tensor) -> torch.Tensor:
        batch = batch.to(self.device)
        loss = (self.net(batch) - batch).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def codes(self, batch: torch.Tensor) -> torch.Tensor:
        self.net.eval()
        return self.net.encode(batch.to(self.device))  # expect: DDP012

    @torch.no_grad()
    def rebuild(self, batch: torch.Tensor) -> torch.Tensor:
        return self.net.module.decoder(self.net.module.encode(batch.to(self.device)))

    def save(self, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save({"net": self.net.state_dict(),  # expect: DDP041
                        "optimizer": self.optimizer.state_dict()}, path)


def main() -> None:
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    agent = Agent(local, os.environ.get("RESUME"))
    data = TensorDataset(torch.randn(8192, 16))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=128, sampler=sampler)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for (batch,) in loader:
            agent.learn(batch)
        agent.save("agent.pt")
    if dist.get_rank() == 0:
        print(agent.rebuild(data.tensors[0][:4]), agent.codes(data.tensors[0][:4]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
