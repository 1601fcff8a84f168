"""strategy="dp" and a sampler switched off."""
import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from boring import BoringModel, RandomDataset

common = dict(max_epochs=4, accelerator="gpu", logger=False)


def old():
    trainer = L.Trainer(devices=2, strategy="dp", **common)  # expect: LIT004
    trainer.fit(BoringModel(), DataLoader(RandomDataset(32, 640), batch_size=16))


def new():
    trainer = L.Trainer(devices=4, strategy=DDPStrategy(static_graph=True),
                        use_distributed_sampler=False, **common)  # expect: LIT009
    trainer.fit(BoringModel(), DataLoader(RandomDataset(32, 640), batch_size=16, shuffle=True))


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    old()
    new()
