"""Entry of a small project: reads a YAML file and hands it to the Trainer."""
import argparse

import yaml

from engine import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    args = parser.parse_args()
    with open(args.config) as stream:
        cfg = yaml.safe_load(stream)
    trainer = Trainer(cfg)
    trainer.fit()
    trainer.close()


if __name__ == "__main__":
    main()
