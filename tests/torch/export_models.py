"""Write TorchScript files for tests and experiments: export_models.py NAME OUT.pt [NAME OUT.pt ...]

NAME is any classifier of torchvision.models, or one of the small modules below, which stand for the
files that users bring. Weights come from seed 0.
"""

import sys

import torch
import torchvision


class TokenClassifier(torch.nn.Module):
    """[B, T] token ids to [B, 5] scores; the positions share one embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, ids):
        return self.head(self.embedding(ids).mean(dim=1))


class TiedLanguageModel(torch.nn.Module):
    """[B, T] token ids to [B, T, 13] scores, with the embedding tied to the head."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(13, 8)
        self.head = torch.nn.Linear(8, 13, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.embedding(ids))


class Autoencoder(torch.nn.Module):
    """[B, 3, 8, 8] to the same shape: a regression."""

    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.decode = torch.nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x):
        return self.decode(torch.relu(self.encode(x)))


class TwoHeads(torch.nn.Module):
    """Returns a tuple: scores and features."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(6, 6)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x):
        features = torch.relu(self.body(x))
        return self.head(features), features


class NoBatch(torch.nn.Module):
    """Sums the batch away: nothing a data-parallel strategy could gather."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(6))

    def forward(self, x):
        return (x * self.scale).sum()


class Regularised(torch.nn.Module):
    """Drops half of its inputs while training."""

    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.drop(x))


SMALL = {
    "token_classifier": TokenClassifier,
    "tied_language_model": TiedLanguageModel,
    "autoencoder": Autoencoder,
    "two_heads": TwoHeads,
    "no_batch": NoBatch,
    "regularised": Regularised,
}


def build(name):
    torch.manual_seed(0)
    if name in SMALL:
        return SMALL[name]()
    if name not in torchvision.models.list_models(module=torchvision.models):
        known = ", ".join(SMALL) + ", " + ", ".join(
            torchvision.models.list_models(module=torchvision.models))
        sys.exit(f"unknown model '{name}'; known: {known}")
    return torchvision.models.get_model(name, weights=None)


def export(name, path, dropout=True):
    """Saves the scripted model and returns it; without dropout its steps are deterministic."""
    model = build(name).train()
    for module in model.modules():
        if not dropout and isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    scripted = torch.jit.script(model)
    scripted.save(path)
    return scripted


def main(arguments):
    if not arguments or len(arguments) % 2:
        sys.exit(__doc__)
    for name, path in zip(arguments[::2], arguments[1::2]):
        export(name, path)
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
