"""Reinforcement learning from logs; functools.partial carries the options to the workers."""
import functools
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)


def transitions():
    blob = torch.load("transitions.pt", map_location="cpu")
    return TensorDataset(blob["state"], blob["action"], blob["reward"], blob["next"])


class Critic(nn.Module):
    def __init__(self, states=17, actions=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states + actions, 256), nn.ReLU(),
                                  nn.Linear(256, 256), nn.ReLU())
        self.value = nn.Linear(256, 1)
        self.advantage = nn.Linear(256, 1)  # expect: DDP001

    def forward(self, state, action):
        return self.value(self.body(torch.cat([state, action], -1)))


def worker(rank, world_size, port, *, epochs, gamma):
    setup(rank, world_size, port)
    critic = DDP(Critic().to(rank), device_ids=[rank])
    target = Critic().to(rank).eval().requires_grad_(False)
    target.load_state_dict(critic.module.state_dict())
    optimizer = torch.optim.Adam(critic.parameters(), 3e-4)
    dataset = transitions()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=256, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for state, action, reward, after in loader:
            state, action, reward, after = (t.to(rank) for t in (state, action, reward, after))
            with torch.no_grad():
                goal = reward + gamma * target(after, action)
            loss = (critic(state, action) - goal).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.module.parameters()):
                slow.lerp_(fast, 0.005)
    dist.destroy_process_group()


def main():
    world_size = torch.cuda.device_count()
    run = functools.partial(worker, epochs=50, gamma=0.99)
    mp.spawn(run, args=(world_size, free_port()), nprocs=world_size)


if __name__ == "__main__":
    main()
