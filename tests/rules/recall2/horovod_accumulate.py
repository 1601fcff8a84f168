"""A language model with Horovod and accumulated gradients."""
import os

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler

ACCUMULATE = 4


class Predict(nn.Module):
    def __init__(self, words=10000, width=256):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cell = nn.LSTM(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, ids):
        return self.out(self.cell(self.words(ids))[0])


def build_loader(path, training):
    data = TensorDataset(torch.load(path, map_location="cpu"))
    if training:
        return DataLoader(data, batch_size=32, shuffle=True)  # expect: HVD006
    sampler = DistributedSampler(data, hvd.size(), hvd.rank(), shuffle=False)
    return DataLoader(data, batch_size=32, sampler=sampler)


def main():
    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    loader = build_loader(os.environ["TRAIN"], True)
    held_out = build_loader(os.environ["VALID"], False)
    model = Predict().cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(),
                                         backward_passes_per_step=ACCUMULATE)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for epoch in range(10):
        model.train()
        for step, (ids,) in enumerate(loader):
            ids = ids.cuda()
            loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1),
                                               ids[:, 1:].flatten())
            (loss / ACCUMULATE).backward()
            if (step + 1) % ACCUMULATE == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # expect: HVD003
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            losses = [nn.functional.cross_entropy(model(ids[:, :-1].cuda()).flatten(0, 1),
                                                  ids[:, 1:].flatten().cuda())
                      for (ids,) in held_out]
        mean = hvd.allreduce(torch.stack(losses).mean(), name="held_out")
        if hvd.rank() == 0:
            print(epoch, mean.exp().item())


if __name__ == "__main__":
    main()
