"""A variational autoencoder; its forward hands numbers back for logging."""
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import DataParallel
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Parts(NamedTuple):
    image: Tensor
    mean: Tensor
    spread: Tensor


class Vae(nn.Module):
    def __init__(self, width: int = 400, code: int = 20) -> None:
        super().__init__()
        self.inner = nn.Linear(784, width)
        self.mean = nn.Linear(width, code)
        self.spread = nn.Linear(width, code)
        self.outer = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 784))

    def forward(self, x: Tensor) -> Parts:
        hidden = self.inner(x.flatten(1)).relu()
        mean, spread = self.mean(hidden), self.spread(hidden)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return Parts(self.outer(code).sigmoid(), mean, spread)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, x: Tensor) -> dict:
        logits = self.layer(x.flatten(1))
        return {"logits": logits, "norm": logits.norm().item()}  # expect: DP011


def main() -> None:
    loader = DataLoader(datasets.MNIST("mnist", transform=transforms.ToTensor()), 512,
                        shuffle=True, drop_last=True)
    vae = DataParallel(Vae()).cuda()
    judge = DataParallel(Classifier()).cuda()
    optimizer = torch.optim.Adam([*vae.parameters(), *judge.parameters()])
    for _ in range(10):
        for image, label in loader:
            image, label = image.cuda(), label.cuda()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                parts = vae(image)  # expect: DP014
                out = judge(image)
                logits = out["logits"]
            kl = -0.5 * (1 + parts.spread - parts.mean.square() - parts.spread.exp()).mean()
            loss = nn.functional.mse_loss(parts.image.float(), image.flatten(1)) + kl
            loss = loss + nn.functional.cross_entropy(logits.float(), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
