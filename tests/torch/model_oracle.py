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

BATCH = 4
# Zoo name -> (constructor, input of the reduced twin or None for structure only).
ZOO = {
    "mlp": (lambda: torch.nn.Linear(12800, 6400), None),
    "resnet18": (torchvision.models.resnet18, [3, 64, 64]),
    "resnet50": (torchvision.models.resnet50, [3, 64, 64]),
}
SCRIPTS = {
    "resnet18": [3, 64, 64],
    "mobilenet_v2": [3, 64, 64],
    "squeezenet1_1": [3, 64, 64],
    "densenet121": [3, 64, 64],
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


def zoo_entry(constructor, twin):
    with torch.device("meta"):
        entry = structure(constructor())
    if twin:
        model = constructor()
        fill(model)
        entry["step"] = classifier_step(model, twin, 1000)
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
    zoo = {name: zoo_entry(*row) for name, row in ZOO.items()}
    (directory / "models.json").write_text(json.dumps(zoo))
    scripts = {}
    for name, shape in SCRIPTS.items():
        scripts[name] = script_entry(name, shape, str(directory / f"{name}.pt"))
        scripts[name]["input"] = shape
    (directory / "scripts.json").write_text(json.dumps(scripts))
    torch.save(torch.nn.Linear(2, 2).state_dict(), directory / "state_dict.pt")
    frozen = torch.jit.freeze(torch.jit.script(torch.nn.Linear(6, 2).eval()))
    frozen.save(str(directory / "frozen.pt"))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
