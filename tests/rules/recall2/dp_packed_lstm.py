"""Sentiment with an LSTM on all cards of the machine."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, path):
        with open(path) as stream:
            self.rows = [line.rstrip("\n").split("\t") for line in stream]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        text, label = self.rows[index]
        return torch.tensor([hash(word) % 20000 + 1 for word in text.split()]), int(label)


def collate(rows):
    ids, labels = zip(*rows)
    lengths = torch.tensor([len(each) for each in ids])
    return pad_sequence(ids, batch_first=True), lengths, torch.tensor(labels)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20001, 200, padding_idx=0)
        self.lstm = nn.LSTM(200, 256, num_layers=2, batch_first=True, bidirectional=True)
        self.attend = nn.Linear(512, 1)
        self.out = nn.Linear(512, 2)
        self.calls = 0
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, ids, lengths):
        self.calls += 1  # expect: DP009
        self.seen.add_(ids.size(0))
        packed = pack_padded_sequence(self.words(ids), lengths.cpu(), batch_first=True,
                                      enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)  # expect: DP007
        weight = self.attend(hidden).softmax(1)
        return self.out((weight * hidden).sum(1)), weight


def main(epochs=10):
    loader = DataLoader(Lines("train.tsv"), 256, shuffle=True, collate_fn=collate, num_workers=4)
    model = Sentiment()
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    model = model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        for ids, lengths, labels in loader:
            logits, weight = model(ids.cuda(), lengths.cuda())
            loss = nn.functional.cross_entropy(logits, labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    inner = model.module if isinstance(model, nn.DataParallel) else model
    torch.save(inner.state_dict(), "sentiment.pt")


if __name__ == "__main__":
    main()
