"""Lightning with hooks: a callback that saves, a manual average, a strategy object."""
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SaveOften(Callback):
    def on_train_epoch_end(self, trainer, module):
        if trainer.is_global_zero:
            trainer.save_checkpoint(f"epoch-{trainer.current_epoch}.ckpt")  # expect: DDP014


class SaveRight(Callback):
    def on_train_epoch_end(self, trainer, module):
        trainer.save_checkpoint("last.ckpt")
        if trainer.is_global_zero:
            print("saved epoch", trainer.current_epoch)


class Forecast(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(8, 64, batch_first=True)
        self.out = nn.Linear(64, 8)
        self.losses = []

    def forward(self, x):
        return self.out(self.cell(x)[0])

    def training_step(self, batch, _):
        (x,) = batch
        return nn.functional.mse_loss(self(x[:, :-1]), x[:, 1:])

    def validation_step(self, batch, _):
        (x,) = batch
        self.losses.append(nn.functional.mse_loss(self(x[:, :-1]), x[:, 1:]))

    def on_validation_epoch_end(self):
        mean = torch.stack(self.losses).mean()
        self.losses.clear()
        self.log("val_loss", mean, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def loader(rows):
    return DataLoader(TensorDataset(torch.randn(rows, 30, 8)), 32, num_workers=2)


if __name__ == "__main__":
    trainer = pl.Trainer(
        accelerator="gpu",
        devices=2,
        strategy=DDPStrategy(find_unused_parameters=False, gradient_as_bucket_view=True),
        callbacks=[SaveOften(), SaveRight()],
        max_epochs=5,
    )
    trainer.fit(Forecast(), loader(4000), loader(400))
