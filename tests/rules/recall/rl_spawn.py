"""Actors spawned for each GPU, weights changed on one rank only."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from env import rollouts


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(64, 128)
        self.pi = nn.Linear(128, 6)
        self.value = nn.Linear(128, 1)

    def forward(self, obs):
        h = torch.relu(self.trunk(obs))
        return self.pi(h), self.value(h)


def learner(rank, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29400"
    dist.init_process_group("nccl", rank=rank, world_size=size)
    torch.cuda.set_device(rank)
    policy = DDP(Policy().cuda(rank), device_ids=[rank])
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=7e-4)
    for update, (obs, action, ret) in enumerate(rollouts(seed=rank)):
        logits, value = policy(obs.cuda(rank))
        advantage = ret.cuda(rank) - value.squeeze(1)
        chosen = torch.log_softmax(logits, 1).gather(1, action.cuda(rank)[:, None]).squeeze(1)
        policy_loss = -(chosen * advantage.detach()).mean()
        value_loss = advantage.pow(2).mean()
        optimizer.zero_grad()
        policy_loss.backward(retain_graph=True)
        value_loss.backward()  # expect: DDP008
        optimizer.step()
        if rank == 0 and update % 500 == 0:
            scores = [policy(o.cuda(rank))[1].mean().item() for o, _, _ in rollouts(1, 5)]
            print(update, sum(scores) / len(scores))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(learner, args=(4,), nprocs=4)
