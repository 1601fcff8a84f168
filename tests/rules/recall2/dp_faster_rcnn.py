"""Detection on COCO with DataParallel; images of different sizes stay a list."""
import argparse

import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.models.detection import fasterrcnn_resnet50_fpn
from torchvision.transforms import functional as F


class Coco(torchvision.datasets.CocoDetection):
    def __getitem__(self, index):
        image, notes = super().__getitem__(index)
        boxes = torch.tensor([note["bbox"] for note in notes], dtype=torch.float32)
        boxes[:, 2:] += boxes[:, :2]
        labels = torch.tensor([note["category_id"] for note in notes])
        return F.to_tensor(image), {"boxes": boxes, "labels": labels}


def collate(batch):
    return tuple(zip(*batch))


def main(args):
    model = fasterrcnn_resnet50_fpn(weights=None, num_classes=91).cuda()
    model = torch.nn.DataParallel(model)
    loader = DataLoader(Coco(args.images, args.notes), batch_size=8, shuffle=True,
                        num_workers=8, collate_fn=collate)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        for images, targets in loader:
            images = [image.cuda() for image in images]
            targets = [{k: v.cuda() for k, v in target.items()} for target in targets]
            losses = model(images, targets)  # expect: DP006
            loss = sum(part.mean() for part in losses.values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(model.module.state_dict(), f"detector_{epoch}.pth")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("images")
    parser.add_argument("notes")
    parser.add_argument("--epochs", type=int, default=26)
    main(parser.parse_args())
