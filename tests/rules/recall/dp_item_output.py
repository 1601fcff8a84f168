"""A forward that returns Python numbers beside tensors, under DataParallel."""
import torch
from torch import nn

from retrieval import loader


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, a, b):
        scores = self.body(a) @ b.t() / self.temperature
        return scores, scores.max().item()  # expect: DP011


scorer = Scorer().to("cuda:0")
scorer = nn.DataParallel(scorer)
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3)
for a, b, y in loader():
    scores, top = scorer(a.cuda(), b.cuda())
    loss = nn.functional.cross_entropy(scores, y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
