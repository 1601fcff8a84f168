"""Distribution by hand within a LightningModule."""
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet50


class Retrieval(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = resnet50()
        self.head = nn.DataParallel(nn.Linear(1000, 128))  # expect: LIT009

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, batch, batch_idx):
        a, b = batch
        a = a.cuda()  # expect: LIT009
        return 1 - torch.cosine_similarity(self(a), self(b)).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Wrapped(Retrieval):
    def setup(self, stage):
        self.backbone = DistributedDataParallel(self.backbone)  # expect: LIT009


if __name__ == "__main__":
    trainer = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=5)
    trainer.fit(Retrieval(), datamodule=None)
