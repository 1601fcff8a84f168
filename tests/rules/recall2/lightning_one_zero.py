"""Text classification as one wrote it for pytorch-lightning 1.x."""
from argparse import ArgumentParser

import pytorch_lightning as pl
import torch
from pytorch_lightning import Trainer, seed_everything
from pytorch_lightning.loggers import TensorBoardLogger
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Bag(pl.LightningModule):
    def __init__(self, hparams):
        super().__init__()
        self.hparams.update(vars(hparams))
        self.table = torch.nn.EmbeddingBag(20000, 128)
        self.out = torch.nn.Linear(128, 4)

    def forward(self, ids):
        return self.out(self.table(ids))

    def training_step(self, batch, batch_nb):
        ids, label = batch
        loss = F.cross_entropy(self.forward(ids), label)
        return {"loss": loss, "log": {"train_loss": loss}}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)

    def train_dataloader(self):
        data = TensorDataset(torch.randint(20000, (5000, 64)), torch.randint(4, (5000,)))
        return DataLoader(data, batch_size=64, shuffle=True)


def main(args):
    seed_everything(args.seed)
    logger = TensorBoardLogger("logs", name="bag")
    trainer = Trainer(
        logger=logger,
        gpus=args.gpus,  # expect: LIT001

        distributed_backend="ddp",  # expect: LIT003


        amp_level="O2",  # expect: LIT005


        weights_summary="top",  # expect: LIT005


        precision=16 if args.half else 32,
        max_epochs=args.epochs,
    )
    trainer.fit(Bag(args))


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--lr", default=1e-3, type=float)
    parser.add_argument("--seed", default=2020, type=int)
    main(parser.parse_args())
