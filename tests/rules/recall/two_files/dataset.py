"""Data sets and loaders."""
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def build_loader(split, args):
    transform = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])
    dataset = datasets.ImageFolder(f"data/{split}", transform)
    return DataLoader(dataset, batch_size=64, shuffle=split == "train", num_workers=4)  # expect: DDP017
