"""Files to batches beside torchvision's DataLoader: decode + RandomResizedCrop 227 + mirror + normalise."""
import os
import time

import torch
import torchvision
from measure import row
from PIL import Image


class Pictures(torch.utils.data.Dataset):
    """The training images of CUB; with `root` elsewhere, of a folder in its layout."""

    def __init__(self, root, transform):
        self.root, self.transform = root, transform
        names = dict(line.split() for line in open(os.path.join(root, "images.txt")))
        labels = dict(line.split() for line in open(os.path.join(root, "image_class_labels.txt")))
        self.items = [(names[i], int(labels[i]) - 1) for i in names if int(labels[i]) <= 100]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        name, label = self.items[i]
        with open(os.path.join(self.root, "images", name), "rb") as f:
            return self.transform(Image.open(f).convert("RGB")), label


def training_transform(size):
    t = torchvision.transforms
    return t.Compose([t.RandomResizedCrop(size), t.RandomHorizontalFlip(), t.ToTensor(),
                      t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def peer(root, images):
    """Processor milliseconds an image, in one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Pictures(root, training_transform(227)), 32, shuffle=True, drop_last=True)
    done, start = 0, None
    for batch, _ in loader:
        if start is None:  # what is started only once does not count
            start = time.process_time()
            continue
        done += len(batch)
        if done >= images:
            break
    spent = time.process_time() - start
    torch.set_num_threads(threads)
    return spent * 1e3 / done


def enlarged(root, side, folder):
    """A sixth of the images at the size of the published ones."""
    if os.path.exists(os.path.join(folder, "images.txt")):
        return folder
    items = Pictures(root, None).items[::6]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "image_class_labels.txt"), "w") as labels:
        for i, (name, label) in enumerate(items, 1):
            image = Image.open(os.path.join(root, "images", name)).convert("RGB")
            scale = side / min(image.size)
            path = os.path.join(folder, "images", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            image.resize([round(s * scale) for s in image.size], Image.BICUBIC).save(path, quality=90)
            labels.write(f"{i} {label + 1}\n")
    with open(os.path.join(folder, "images.txt"), "w") as names:
        names.writelines(f"{i} {name}\n" for i, (name, _) in enumerate(items, 1))
    return folder


def rows(setup):
    if not setup.cub:
        return
    root = enlarged(setup.cub, 375, os.path.join(setup.folder, "cub375"))
    theirs, mine = float("inf"), float("inf")
    for _ in range(setup.rounds):
        theirs = min(theirs, peer(root, 600))
        mine = min(mine, setup.ours("gle-bench-data", "load", root, 0, 1800)[1])
    yield row("decoding and preparing an image of CUB, processor time", "torchvision", mine, theirs, "ms", 2)
