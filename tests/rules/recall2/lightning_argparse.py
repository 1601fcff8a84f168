"""Music tagging with Lightning; options by argparse, devices as typed on the command line."""
import argparse
import os

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(pl.LightningModule):
    def __init__(self, tags: int, lr: float):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Conv1d(1, 32, 9, 4), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
                                 nn.Flatten(), nn.Linear(32, tags))
        self.register_buffer("weights", torch.ones(tags))

    def training_step(self, batch, _):
        wave, tags = batch
        logits = self.net(wave)
        noise = torch.randn(logits.shape).cuda()  # expect: LIT009
        loss = nn.functional.binary_cross_entropy_with_logits(
            logits + 0.01 * noise, tags, pos_weight=self.weights)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        wave, tags = batch
        mask = torch.ones(len(tags), 1, device=self.device)
        loss = nn.functional.binary_cross_entropy_with_logits(self.net(wave) * mask, tags)
        self.log("val_loss", loss, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.hparams.lr)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", default="4")  # expect: LIT002
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--tags", type=int, default=50)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--resume", default=None)
    return parser.parse_args()


def main():
    opts = options()
    data = TensorDataset(torch.randn(512, 1, 16000), torch.rand(512, opts.tags).round())
    loader = DataLoader(data, 16, num_workers=os.cpu_count() // 4, shuffle=True)
    trainer = pl.Trainer(accelerator="gpu", num_nodes=opts.nodes, strategy="ddp", max_epochs=50,
                         devices=opts.devices,  # expect: LIT002
                         logger=False)
    check = pl.Trainer(accelerator="gpu", devices=1, fast_dev_run=True, logger=False)
    check.fit(Tagger(opts.tags, opts.lr), loader)

    trainer.fit(Tagger(opts.tags, opts.lr), loader, ckpt_path=opts.resume)


if __name__ == "__main__":
    main()
