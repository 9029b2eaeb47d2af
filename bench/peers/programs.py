"""Whole programs beside Python scripts that do the same: from the start to the first embedding, and an epoch of CUB from
files to weights."""
import os
import subprocess
import sys
import time

import torch
from data_loading import Pictures, training_transform
from measure import group_loss, in_turns, row
from networks import WithEmbedding
from PIL import Image

SIDE = 128  # near the short side of the reduced pictures; BN-Inception takes no 144


def embed_one(weights, picture):
    """The peer of gle-embed: this file run as a program."""
    import torchvision.transforms as t

    network = WithEmbedding("bn_inception", 100)
    network.net.load_state_dict(torch.load(weights))
    network.eval()
    prepare = t.Compose([t.Resize((227, 227)), t.ToTensor(), t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    with torch.inference_mode():
        print(network(prepare(Image.open(picture).convert("RGB"))[None])[0][0, :4].tolist())


def start(setup):
    weights, picture = os.path.join(setup.folder, "bn_inception.pth"), os.path.join(setup.folder, "picture.png")
    ours = os.path.join(setup.folder, "start.safetensors")
    torch.manual_seed(0)
    torch.save(WithEmbedding("bn_inception", 100).net.state_dict(), weights)
    Image.effect_noise((256, 256), 60).convert("RGB").save(picture)
    subprocess.run([setup.program("gle-model"), "import", weights, ours, "--network", "bn_inception"], check=True,
                   capture_output=True)

    def timed(*command):
        begin = time.perf_counter()
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        return time.perf_counter() - begin

    best = in_turns(setup.rounds, {
        "ours": lambda: timed(setup.program("gle-embed"), ours, picture, "--out", os.path.join(setup.folder, "one"),
                              "--input", "227x227", "--overwrite"),
        "theirs": lambda: timed(sys.executable, __file__, weights, picture)})
    yield row("start of a program to the embedding of one image", "Python + PyTorch", best["ours"] * 1e3,
              best["theirs"] * 1e3, "ms", 10, 50)


def epoch_of_peer(root):
    """BN-Inception over the training images once, 32 at a time, two loader processes as PyTorch's guides advise."""
    network = WithEmbedding("bn_inception", 100).train().to(memory_format=torch.channels_last)
    optimiser = torch.optim.RAdam(network.parameters(), lr=1e-4, foreach=True)
    loader = torch.utils.data.DataLoader(Pictures(root, training_transform(SIDE)), 32, shuffle=True, num_workers=2,
                                         drop_last=True)
    begin = time.perf_counter()
    for images, labels in loader:
        optimiser.zero_grad(set_to_none=True)
        embedding, logits = network(images.contiguous(memory_format=torch.channels_last))
        loss = group_loss(embedding, logits, labels, None, 1, rows_may_be_empty=True)
        (loss + torch.nn.functional.cross_entropy(logits, labels)).backward()
        optimiser.step()
    return time.perf_counter() - begin


def epoch(setup):
    if not setup.cub:
        return
    settings = [f"input.height={SIDE}", f"input.width={SIDE}", "augment.geometry=random_resized_crop",
                "augment.mirror=0.5",
                "network.name=bn_inception", "phase1.epochs=0", "phase2.epochs=1", "phase2.loss=group_loss",
                "phase2.sampler=classes", "phase2.classes=8", "phase2.samples=4", "phase2.learning_rate=1e-4",
                "group_loss.cross_entropy_weight=1", "evaluation.every=0", "data.workers=2"]

    def ours():
        begin = time.perf_counter()
        command = [setup.program("gle-train"), "--data", setup.cub, "--out", os.path.join(setup.folder, "epoch"),
                   "--force", "--quiet"]
        for setting in settings:
            command += ["--set", setting]
        subprocess.run(command, check=True)
        return time.perf_counter() - begin

    mine = ours()
    theirs = epoch_of_peer(setup.cub)
    yield row(f"an epoch of CUB, {SIDE} crop, files to weights", "PyTorch, eager, NHWC", mine, theirs, "s", 1.4, 2.0)


def rows(setup):
    yield from start(setup)
    yield from epoch(setup)


if __name__ == "__main__":
    embed_one(sys.argv[1], sys.argv[2])
