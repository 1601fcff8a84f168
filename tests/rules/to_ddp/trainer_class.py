import os

import torch
from torch.nn import DataParallel, Linear, MSELoss
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, data, gpu_ids, epochs):
        self.device = "cuda:0"
        self.epochs = epochs
        self.model = self.build(gpu_ids)
        self.loader = DataLoader(data, 16, shuffle=True)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.criterion = MSELoss()

    def build(self, gpu_ids):
        model = Linear(4, 1).to(gpu_ids[0])
        return DataParallel(model, device_ids=gpu_ids)

    def fit(self):
        for epoch in range(self.epochs):
            for inputs, targets in self.loader:
                self.optimizer.zero_grad()
                outputs = self.model(inputs.to(self.device))
                self.criterion(outputs, targets.to(self.device)).backward()
                self.optimizer.step()


def run():
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    dist = 4  # features
    data = TensorDataset(torch.randn(64, dist), torch.randn(64, 1))
    trainer = Trainer(data, [0, 1], epochs=2)
    trainer.fit()


if __name__ == "__main__":
    run()
