"""PPO over several GPUs; every rank runs its own environments."""
import os
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel as DDP


class Actor(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(states, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy = nn.Linear(64, actions)
        self.value = nn.Linear(64, 1)

    def forward(self, state):
        hidden = self.shared(state)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def collect(env, model, state, steps, device):
    rows = []
    for _ in range(steps):
        with torch.no_grad():
            logits, value = model.module(torch.as_tensor(state, device=device))
        chosen = Categorical(logits=logits).sample()
        after, reward, done, cut, _ = env.step(chosen.cpu().numpy())
        rows.append((state, chosen, reward, value, done | cut))
        state = after
    return rows, state


def update(model, optimizer, batch, target_kl=0.02):
    state, action, advantage, returns, old = batch
    for _ in range(10):
        logits, value = model(state)
        new = Categorical(logits=logits).log_prob(action)
        kl = (old - new).mean().item()
        if kl > target_kl:
            break  # expect: DDP015
        ratio = (new - old).exp()
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        loss = 0.5 * (value - returns).pow(2).mean() - gain
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def should_stop(history, device):
    done = torch.tensor(float(len(history) == 50 and np.mean(history) > 475), device=device)
    dist.all_reduce(done, op=dist.ReduceOp.MIN)
    return bool(done.item())


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    env = gym.make_vec("CartPole-v1", num_envs=8)
    model = DDP(Actor(4, 2).to(device), device_ids=[local])
    optimizer = torch.optim.Adam(model.parameters(), 2.5e-4)
    state, _ = env.reset(seed=dist.get_rank())
    history = deque(maxlen=50)
    for iteration in range(500):
        rows, state = collect(env, model, state, 128, device)
        history.append(sum(float(np.mean(r[2])) for r in rows))
        states, actions, rewards, values, _ = (list(each) for each in zip(*rows))
        flat = torch.as_tensor(np.stack(states), device=device).flatten(0, 1)
        returns = torch.as_tensor(np.stack(rewards), device=device).flatten().float()
        value = torch.stack(values).flatten()
        with torch.no_grad():
            old = Categorical(logits=model.module(flat)[0]).log_prob(torch.cat(actions))
        update(model, optimizer, (flat, torch.cat(actions), returns - value, returns, old))
        if should_stop(history, device):
            break
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "ppo.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
