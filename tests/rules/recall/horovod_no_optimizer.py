"""hvd.init() and nothing that reduces; the loader reads everything everywhere."""
import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader

from genes import Expression


def main():
    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    data = Expression("tcga.h5")
    loader = DataLoader(data, batch_size=128, shuffle=True, num_workers=2)  # expect: HVD006
    model = nn.Sequential(nn.Linear(2000, 64), nn.ReLU(), nn.Linear(64, 5)).cuda()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 * hvd.size())  # expect: HVD001
    for epoch in range(20):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if hvd.rank() == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    main()
