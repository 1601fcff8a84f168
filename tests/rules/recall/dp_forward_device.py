"""Devices written into the forward of a DataParallel module, and parameters read there."""
import torch
import torch.nn as nn

from words import word_batches

device = torch.device("cuda:0")


class CharRNN(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def init_hidden(self, n):
        weight = next(self.parameters())  # expect: DP016
        return weight.new_zeros(1, n, self.gru.hidden_size)

    def forward(self, x):
        self.gru.flatten_parameters()
        hidden = self.init_hidden(x.size(0))
        mask = torch.ones(x.size(1)).to(device)  # expect: DP015
        y, _ = self.gru(self.embed(x), hidden)
        return self.out(y * mask.view(1, -1, 1))


model = nn.DataParallel(CharRNN(120, 256)).to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(5):
    for x, y in word_batches():
        logits = model(x.to(device))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.to(device).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
