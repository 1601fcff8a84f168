# Deblurring on cards 2 and 3; another job has the first two.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 5
GPUS = [2, 3]


class Deblur(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 48, 5, padding=2), nn.ReLU(),
                                  nn.Conv2d(48, 3, 5, padding=2))

    def forward(self, x):
        return x + self.conv(x)


def train(net, loader):
    optimizer = torch.optim.Adam(net.parameters(), 1e-4)
    for epoch in range(100):
        for blurred, sharp in loader:
            out = net(blurred.to("cuda:2"))
            loss = nn.functional.l1_loss(out, sharp.to("cuda:2"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            torch.save(net.module.state_dict(), "deblur_%d.pt" % epoch)


if __name__ == "__main__":
    pairs = TensorDataset(*torch.load("pairs.pt", map_location="cpu"))
    loader = DataLoader(pairs, batch_size=BATCH, shuffle=True)  # expect: DP004
    model = Deblur().to("cuda:0")
    model = nn.DataParallel(model, device_ids=GPUS)  # expect: DP002 DP017
    train(model, loader)
