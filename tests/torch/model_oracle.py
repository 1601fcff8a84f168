"""What Python's torch and torchvision say about the models of the zoo and about TorchScript files.

model_oracle.py DIR writes DIR/models.json (structure of every zoo model, one training step of the
reduced ones), DIR/scripts.json (the same step for exported files) and the files DIR/NAME.pt.
Both sides fill weights and inputs from the same generators, so no weights travel.
"""

import json
import pathlib
import sys

import torch
import torchvision

import export_models
from bert_oracle import Bert

BATCH = 4
RESNETS = torchvision.models.resnet


class Gpt2Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.c_attn = torch.nn.Linear(width, 3 * width)
        self.c_proj = torch.nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.c_attn(x).split(width, 2))
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class Gpt2Mlp(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = torch.nn.Linear(width, 4 * width)
        self.c_proj = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(torch.nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Gpt2Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = torch.nn.LayerNorm(width)
        self.attn = Gpt2Attention(width, heads)
        self.ln_2 = torch.nn.LayerNorm(width)
        self.mlp = Gpt2Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(torch.nn.Module):
    def __init__(self, vocabulary=50257, positions=1024, width=768, layers=12, heads=12):
        super().__init__()
        self.wte = torch.nn.Embedding(vocabulary, width)
        self.wpe = torch.nn.Embedding(positions, width)
        self.h = torch.nn.Sequential(*[Gpt2Block(width, heads) for _ in range(layers)])
        self.ln_f = torch.nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        return self.ln_f(self.h(x)) @ self.wte.weight.T


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def small_vgg16():
    model = without_dropout(torchvision.models.vgg16(init_weights=False))
    model.classifier[0] = torch.nn.Linear(512 * 7 * 7, 128)
    model.classifier[3] = torch.nn.Linear(128, 128)
    model.classifier[6] = torch.nn.Linear(128, 1000)
    return model


# Zoo name -> (constructor, constructor of what a training step is compared with, or None): the twin,
# except for ResNets, whose twin is narrower than torchvision builds them.
ZOO = {
    "mlp": (lambda: torch.nn.Linear(12800, 6400), None),
    "resnet18": (RESNETS.resnet18, RESNETS.resnet18),
    "resnet34": (RESNETS.resnet34, None),
    "resnet50": (RESNETS.resnet50, RESNETS.resnet50),
    "resnet101": (RESNETS.resnet101, None),
    "resnet152": (RESNETS.resnet152, None),
    "resnext50_32x4d": (RESNETS.resnext50_32x4d, RESNETS.resnext50_32x4d),
    "wide_resnet50_2": (RESNETS.wide_resnet50_2, None),
    "vgg16": (lambda: torchvision.models.vgg16(init_weights=False), small_vgg16),
    "densenet121": (torchvision.models.densenet121, torchvision.models.densenet121),
    "mobilenet_v2": (torchvision.models.mobilenet_v2,
                     lambda: without_dropout(torchvision.models.mobilenet_v2())),
    "gpt2": (Gpt2, lambda: Gpt2(512, 32, 64, 2, 4)),
    "bert_base": (Bert, lambda: Bert(512, 32, 64, 2, 4)),
    "bert_large": (lambda: Bert(width=1024, layers=24, heads=16), lambda: Bert(512, 32, 64, 2, 4)),
}
LANGUAGE = {"gpt2", "bert_base", "bert_large"}
SCRIPTS = {
    "resnet18": [3, 64, 64],
    "mobilenet_v2": [3, 64, 64],
    "squeezenet1_1": [3, 64, 64],
    "autoencoder": [3, 8, 8],
    "two_heads": [6],
    "no_batch": [6],
    "token_classifier": [7],
    "tied_language_model": [7],
}


def seeded_normal(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def fill(model):
    """Parameter i draws from generator i: matrices scaled by fan-in, scales around 1."""
    for i, (name, p) in enumerate(model.named_parameters()):
        draw = seeded_normal(p.shape, i)
        if p.dim() > 1:
            draw *= (2.0 / p[0].numel()) ** 0.5
        else:
            draw = draw * 0.1 + (1.0 if name.endswith("weight") else 0.0)
        p.data.copy_(draw)
    for name, b in model.named_buffers():
        b.fill_(1 if name.endswith("running_var") else 0)


def step(model, inputs, targets, loss_function):
    model.train()
    output = model(inputs)
    if isinstance(output, tuple):
        output = output[0]
    loss = loss_function(output.flatten(0, -2) if output.dim() == 3 else output, targets.flatten()
                         if output.dim() == 3 else targets)
    loss.backward()
    gradients = []
    for i, p in enumerate(model.parameters()):
        probe = seeded_normal(p.shape, 1000 + i)
        gradients.append([p.grad.norm().item(), (p.grad * probe).sum().item()])
    return {
        "outputs": output.detach().flatten().tolist(),
        "loss": loss.item(),
        "gradients": gradients,
        "buffer_sums": [b.double().sum().item() for b in model.buffers()],
    }


def structure(model):
    return {
        "parameters": [[n, list(p.shape)] for n, p in model.named_parameters()],
        "buffers": [[n, list(b.shape)] for n, b in model.named_buffers()],
        "parameter_count": sum(p.numel() for p in model.parameters()),
        "modules": len(list(model.modules())) - 1,
    }


def classifier_step(model, shape, classes):
    return step(model, seeded_normal([BATCH] + shape, 500), torch.arange(BATCH) * 3 % classes,
                torch.nn.functional.cross_entropy)


def token_step(model, length):
    ids = torch.arange(BATCH * length).reshape(BATCH, length) * 7 % 512
    return step(model, ids, (ids + 1) % 512, torch.nn.functional.cross_entropy)


def zoo_entry(name, constructor, twin_constructor):
    with torch.device("meta"):
        entry = structure(constructor())
    if twin_constructor:
        with torch.device("meta"):  # fill() gives the values
            twin = twin_constructor()
        twin = twin.to_empty(device="cpu")
        fill(twin)
        entry["step"] = token_step(twin, 32) if name in LANGUAGE else classifier_step(
            twin, [3, 64, 64], 1000)
    return entry


def script_entry(name, shape, path):
    # Dropout draws from the global generator, which the other side does not follow.
    model = export_models.export(name, path, dropout=False)
    entry = structure(model)
    if name == "no_batch":
        return entry
    if name == "autoencoder":
        entry["step"] = step(model, seeded_normal([BATCH] + shape, 500),
                             seeded_normal([BATCH] + shape, 501), torch.nn.functional.mse_loss)
    elif name in ("token_classifier", "tied_language_model"):
        ids = torch.arange(BATCH * shape[0]).reshape([BATCH] + shape) % 2
        targets = torch.arange(BATCH) if name == "token_classifier" else ids
        entry["step"] = step(model, ids, targets, torch.nn.functional.cross_entropy)
    else:
        classes = 4 if name == "two_heads" else 1000
        entry["step"] = classifier_step(model, shape, classes)
    return entry


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    zoo = {name: zoo_entry(name, *row) for name, row in ZOO.items()}
    (directory / "models.json").write_text(json.dumps(zoo))
    scripts = {}
    for name, shape in SCRIPTS.items():
        scripts[name] = script_entry(name, shape, str(directory / f"{name}.pt"))
        scripts[name]["input"] = shape
    (directory / "scripts.json").write_text(json.dumps(scripts))
    export_models.export("regularised", str(directory / "regularised.pt"))
    torch.save(torch.nn.Linear(2, 2).state_dict(), directory / "state_dict.pt")
    frozen = torch.jit.freeze(torch.jit.script(torch.nn.Linear(6, 2).eval()))
    frozen.save(str(directory / "frozen.pt"))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
