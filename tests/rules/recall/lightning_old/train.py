"""Lightning of the 1.x years."""
from argparse import ArgumentParser

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.nn import functional as F
from torch.utils.data import DataLoader, random_split
from torchvision import transforms
from torchvision.datasets import MNIST


class LitClassifier(pl.LightningModule):
    def __init__(self, hidden=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.l1 = torch.nn.Linear(784, hidden)
        self.l2 = torch.nn.Linear(hidden, 10)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x.flatten(1))))

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.hparams.lr)


def cli_main():
    parser = ArgumentParser()
    parser.add_argument("--gpus", default="2")  # expect: LIT002
    parser.add_argument("--epochs", default=10, type=int)
    args = parser.parse_args()
    dataset = MNIST("", train=True, download=True, transform=transforms.ToTensor())
    train, val = random_split(dataset, [55000, 5000], torch.Generator().manual_seed(1))
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        gpus=args.gpus,  # expect: LIT001 LIT002
        accelerator="ddp",  # expect: LIT003
        precision=16,  # expect: LIT006
        auto_select_gpus=True,  # expect: LIT005
        log_gpu_memory="min_max",  # expect: LIT005
        callbacks=[ModelCheckpoint(monitor="val_loss")],
    )
    trainer.fit(LitClassifier(), DataLoader(train, 32, shuffle=True, num_workers=4),
                DataLoader(val, 32, num_workers=4))


if __name__ == "__main__":
    cli_main()
