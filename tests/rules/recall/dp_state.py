"""Running statistics kept as plain attributes under DataParallel."""
import torch
import torch.nn as nn

from quant import stream


class QuantLinear(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.max_seen = 0.0
        self.calls = 0

    def forward(self, x):
        self.calls += 1  # expect: DP009
        self.max_seen = 0.9 * self.max_seen + 0.1 * x.abs().max().detach()  # expect: DP009
        return self.linear(x / (self.max_seen + 1e-6))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = QuantLinear(256)
        self.last = nn.Linear(256, 2)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


model = nn.DataParallel(Net()).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x, y in stream(64):
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("range", model.module.first.max_seen, "after", model.module.first.calls)
