"""Model and data of the regression."""
import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tables(pl.LightningDataModule):
    def __init__(self, rows: int = 10000, batch_size: int = 128):
        super().__init__()
        self.rows, self.batch_size = rows, batch_size

    def setup(self, stage):
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(self.rows, 12, generator=generator)
        self.data = TensorDataset(x, x.sum(1, keepdim=True))

    def train_dataloader(self):
        return DataLoader(self.data, self.batch_size, shuffle=True)


class Regression(pl.LightningModule):
    def __init__(self, lr: float = 1e-2):
        super().__init__()
        self.lr = lr
        self.layer = nn.Linear(12, 1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.layer(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)
