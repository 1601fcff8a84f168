"""Views of an image for training and evaluation."""
from torchvision import transforms as T


def training_view():
    return T.Compose([T.RandomCrop(64, padding=8), T.RandomHorizontalFlip(), T.ToTensor()])


def evaluation_view():
    return T.Compose([T.CenterCrop(64), T.ToTensor()])
