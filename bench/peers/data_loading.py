"""Loading by torchvision's DataLoader and by gle-bench-data, in turns in one run: decode + RandomResizedCrop 227 +
mirror + normalise.
    python bench/peers/data_loading.py build/release/bench/gle-bench-data CUB_200_2011 [--short-side 375]
With --short-side a sample of the images is first enlarged, to stand for the data set at full resolution."""
import argparse
import os
import subprocess
import tempfile
import time

import PIL
import torch
import torchvision
from PIL import Image


class Pictures(torch.utils.data.Dataset):
    def __init__(self, root):
        self.root = root
        names = dict(line.split() for line in open(os.path.join(root, "images.txt")))
        labels = dict(line.split() for line in open(os.path.join(root, "image_class_labels.txt")))
        self.items = [(names[i], int(labels[i])) for i in names if int(labels[i]) <= 100]
        transforms = torchvision.transforms
        self.transform = transforms.Compose([
            transforms.RandomResizedCrop(227), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        name, label = self.items[i]
        with open(os.path.join(self.root, "images", name), "rb") as f:
            return self.transform(Image.open(f).convert("RGB")), label


def peer(root, workers, images):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Pictures(root), 32, shuffle=True, num_workers=workers, drop_last=True)
    done = 0
    start = None
    for batch, _ in loader:
        if start is None:  # starting the processes does not count
            start, cpu = time.time(), time.process_time()
            continue
        done += len(batch)
        if done >= images:
            break
    return done / (time.time() - start), (time.process_time() - cpu) * 1e3 / done


def ours(binary, root, workers, images):
    return [float(v) for v in subprocess.run([binary, "load", root, str(workers), str(images)], check=True,
                                             capture_output=True, text=True).stdout.split()]


def enlarged(root, side, folder):
    items = Pictures(root).items[::6]
    with open(os.path.join(folder, "images.txt"), "w") as names, open(
            os.path.join(folder, "image_class_labels.txt"), "w") as labels:
        for i, (name, label) in enumerate(items, 1):
            image = Image.open(os.path.join(root, "images", name)).convert("RGB")
            scale = side / min(image.size)
            path = os.path.join(folder, "images", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            image.resize([round(s * scale) for s in image.size], Image.BICUBIC).save(path, quality=90)
            names.write(f"{i} {name}\n")
            labels.write(f"{i} {label}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("root")
    parser.add_argument("--short-side", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = options.root
        if options.short_side:
            enlarged(root, options.short_side, folder)
            root = folder
        print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {PIL.__version__}")
        # Without workers all work is in one thread, whose processor time counts: other processes do not disturb it.
        for workers in (0, 1, 2):
            rates = []
            for _ in range(options.rounds):
                theirs = peer(root, workers, options.images)
                mine = ours(options.binary, root, workers, 3 * options.images)
                rates.append((theirs[1] / mine[1], mine[1], theirs[1]) if workers == 0 else
                             (mine[0] / theirs[0], mine[0], theirs[0]))
            ratio, mine, theirs = sorted(rates)[len(rates) // 2]
            unit = "ms of processor an image" if workers == 0 else "images/s"
            print(f"{workers} workers: torchvision {theirs:.2f}, gle {mine:.2f} {unit}, {ratio:.2f} x "
                  f"(all ratios {' '.join(f'{r[0]:.2f}' for r in rates)})")


main()
