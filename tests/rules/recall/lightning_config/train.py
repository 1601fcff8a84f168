"""Reads its Trainer's arguments from a file."""
import sys

import pytorch_lightning as pl
import yaml

from project import Data, Model


def main(path):
    with open(path) as stream:
        cfg = yaml.safe_load(stream)
    pl.seed_everything(cfg["seed_everything"])
    trainer = pl.Trainer(**cfg["trainer"])
    trainer.fit(Model(**cfg["model"]), Data(**cfg["data"]))


if __name__ == "__main__":
    main(sys.argv[1])
