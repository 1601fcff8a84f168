#!/usr/bin/env python3
"""Exports torchvision's classification models as TorchScript files for `bench --model FILE.pt`.

Usage: export_torchvision.py DIR [MODEL...]; without names, every model of the published DataParallel
runs. Weights are torchvision's random initialisation: times and memory do not depend on them.
"""
import pathlib
import sys

import torch
import torchvision

PUBLISHED = """
mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d
resnext101_32x8d wide_resnet50_2 wide_resnet101_2 densenet121 densenet169 densenet201 densenet161 squeezenet1_0
squeezenet1_1 vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn mobilenet_v2 shufflenet_v2_x0_5
shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0
""".split()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PUBLISHED:
        model = getattr(torchvision.models, name)(weights=None).train()
        torch.jit.script(model).save(str(folder / f"{name}.pt"))
        print(folder / f"{name}.pt", flush=True)


if __name__ == "__main__":
    main()
