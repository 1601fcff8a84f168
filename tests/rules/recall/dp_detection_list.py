"""Faster R-CNN under DataParallel with a list of images."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision.models.detection import fasterrcnn_resnet50_fpn

from coco import CocoBoxes


def collate_fn(batch):
    return tuple(zip(*batch))


def main():
    device = torch.device("cuda")
    model = nn.DataParallel(fasterrcnn_resnet50_fpn(num_classes=91)).to(device)
    loader = DataLoader(CocoBoxes("train2017"), batch_size=8, shuffle=True, collate_fn=collate_fn,
                        num_workers=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    for epoch in range(26):
        model.train()
        for images, targets in loader:
            images = [image.to(device) for image in images]
            targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
            losses = model(images, targets)  # expect: DP006
            loss = sum(value.mean() for value in losses.values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(model.module.state_dict(), "frcnn_{}.pth".format(epoch))


if __name__ == "__main__":
    main()
