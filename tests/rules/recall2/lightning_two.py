"""A LightningModule for Lightning 2, with a DataModule that shards by hand."""
import lightning as L
import torch
import torch.nn.functional as F
import torchvision
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.transforms import ToTensor


class Digits(L.LightningDataModule):
    def __init__(self, root: str = "mnist", batch_size: int = 64) -> None:
        super().__init__()
        self.save_hyperparameters()

    def prepare_data(self) -> None:
        torchvision.datasets.MNIST(self.hparams.root, download=True)

    def setup(self, stage: str | None = None) -> None:
        self.train = torchvision.datasets.MNIST(self.hparams.root, transform=ToTensor())
        self.val = torchvision.datasets.MNIST(self.hparams.root, train=False,
                                              transform=ToTensor())

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, self.hparams.batch_size, num_workers=4, drop_last=True,
                          sampler=DistributedSampler(self.train, shuffle=True))

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.val, 256, num_workers=4)


class Classifier(L.LightningModule):
    def __init__(self, width: int = 128, lr: float = 1e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(),
                                 nn.Linear(width, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        logits = self(x)
        self.log("val/loss", F.cross_entropy(logits, y), on_epoch=True)  # expect: DDP022
        self.log("val/acc", (logits.argmax(1) == y).float().mean(), on_epoch=True, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main() -> None:
    L.seed_everything(0, workers=True)
    trainer = L.Trainer(
        accelerator="gpu",
        devices=4,
        strategy="ddp",
        precision="16-mixed",
        max_epochs=10,
        log_every_n_steps=20,
        callbacks=[ModelCheckpoint(monitor="val/acc", mode="max")],
    )
    trainer.fit(Classifier(), datamodule=Digits())


if __name__ == "__main__":
    main()
