"""A tagger whose forward asks its own parameters where it lives; wrapped in DataParallel."""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, words, tags, width=256, longest=512):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, 8, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6)
        self.out = nn.Linear(width, tags)
        self.scale = nn.Parameter(torch.ones(1))

    @property
    def device(self):
        return next(self.parameters()).device  # expect: DP016

    def forward(self, ids):
        places = torch.arange(ids.size(1), device=self.device)
        hidden = self.layers(self.words(ids) * self.scale + self.places(places))
        return self.out(hidden)


class Probe(nn.Module):
    """Asks its input instead, so a replica knows its device."""

    def __init__(self, width, tags):
        super().__init__()
        self.out = nn.Linear(width, tags)

    def forward(self, hidden):
        noise = torch.randn(hidden.shape, device=hidden.device)
        flag = torch.zeros(hidden.size(0), 1, device="cuda:0")  # expect: DP015
        return self.out(hidden + 0.1 * noise) + flag


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", action="store_true")
    args = parser.parse_args()
    data = TensorDataset(*torch.load("tags.pt", map_location="cpu"))
    loader = DataLoader(data, batch_size=128, shuffle=True)
    net = Probe(256, 17) if args.probe else Tagger(30000, 17)
    probe = nn.DataParallel(Probe(256, 17)).cuda()
    model = nn.DataParallel(Tagger(30000, 17).cuda())
    optimizer = torch.optim.Adam(list(model.parameters()) + list(probe.parameters()), 1e-4)
    print(sum(p.numel() for p in net.parameters()), next(net.parameters()).device)
    for epoch in range(4):
        for ids, tags in loader:
            logits = model(ids.cuda())
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten().cuda())
            extra = probe(torch.randn(ids.size(0), 256).cuda())
            loss = loss + extra.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
