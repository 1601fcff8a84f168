"""The model returns its loss; DataParallel gathers a vector of them."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from kg import Triples


class TransE(nn.Module):
    def __init__(self, entities, relations, dim=200, margin=1.0):
        super().__init__()
        self.margin = margin
        self.entity = nn.Embedding(entities, dim)
        self.relation = nn.Embedding(relations, dim)
        self.criterion = nn.MarginRankingLoss(margin=margin)

    def distance(self, triple):
        h, r, t = triple[:, 0], triple[:, 1], triple[:, 2]
        return (self.entity(h) + self.relation(r) - self.entity(t)).norm(p=1, dim=1)

    def forward(self, positive, negative):
        good, bad = self.distance(positive), self.distance(negative)
        target = -torch.ones_like(good)
        return self.criterion(good, bad, target)


def main():
    data = Triples("FB15k")
    model = nn.DataParallel(TransE(data.entities, data.relations).cuda())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        for positive, negative in data.batches(1024):
            optimizer.zero_grad()
            loss = model(positive.cuda(), negative.cuda())
            loss.backward()  # expect: DP008
            optimizer.step()


main()
