"""LightningCLI: class, data and Trainer come from a YAML file."""
from lightning.pytorch.cli import LightningCLI

from parts import Regression, Tables


def cli_main():
    LightningCLI(Regression, Tables, save_config_kwargs={"overwrite": True})


if __name__ == "__main__":
    cli_main()
