"""Arguments kept in a dictionary and resumed the old way."""
import os

import pytorch_lightning as pl

from project import Data, Model

trainer_args = {
    "gpus": -1,  # expect: LIT001
    "distributed_backend": "ddp",  # expect: LIT003
    "weights_summary": "full",  # expect: LIT005
    "max_epochs": 20,
}
if os.path.exists("last.ckpt"):
    trainer_args["resume_from_checkpoint"] = "last.ckpt"

pl.seed_everything(3)
trainer = pl.Trainer(**trainer_args)
trainer.fit(Model(), Data())
