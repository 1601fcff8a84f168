"""A packed LSTM tagger under DataParallel."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from conll import batches


class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim=128):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, words, lengths):
        self.lstm.flatten_parameters()
        packed = pack_padded_sequence(self.embedding(words), lengths.cpu(), batch_first=True,
                                      enforce_sorted=False)
        hidden, _ = self.lstm(packed)
        hidden, _ = pad_packed_sequence(hidden, batch_first=True)  # expect: DP007
        return self.out(hidden)


def train():
    model = Tagger(20000, 17).cuda()
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    loss_fn = nn.CrossEntropyLoss(ignore_index=-100)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(30):
        for words, lengths, tags in batches("train"):
            scores = model(words.cuda(), lengths.cuda())
            loss = loss_fn(scores.transpose(1, 2), tags.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    train()
