"""Images with Accelerate: the loaders of one set are left out, metrics count padded rows."""
import evaluate
import torch
import torchvision
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader
from torchvision.transforms import ToTensor


def loaders(size):
    train = torchvision.datasets.CIFAR10("cifar", transform=ToTensor())
    test = torchvision.datasets.CIFAR10("cifar", train=False, transform=ToTensor())
    return DataLoader(train, size, shuffle=True), DataLoader(test, size)  # expect: ACC002


def fit(epochs: int = 5, size: int = 128):
    accelerator = Accelerator()
    train, test = loaders(size)
    net = torchvision.models.resnet18(num_classes=10)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net, optimizer, test = accelerator.prepare(net, optimizer, test)
    accuracy = evaluate.load("accuracy")
    exact = evaluate.load("accuracy")
    for epoch in range(epochs):
        net.train()
        for image, label in train:
            image = image.to(accelerator.device)
            label = label.to(accelerator.device)
            loss = nn.functional.cross_entropy(net(image), label)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        net.eval()
        for image, label in test:
            with torch.inference_mode():
                guess = net(image).argmax(-1)
            both = accelerator.gather((guess, label))
            accuracy.add_batch(predictions=both[0], references=both[1])  # expect: ACC003
            sure, truth = accelerator.gather_for_metrics((guess, label))
            exact.add_batch(predictions=sure, references=truth)
        if accelerator.is_main_process:
            print(epoch, accuracy.compute(), exact.compute())
            accelerator.wait_for_everyone()  # expect: DDP014
            accelerator.save(accelerator.unwrap_model(net).state_dict(), "net.pt")


if __name__ == "__main__":
    fit()
