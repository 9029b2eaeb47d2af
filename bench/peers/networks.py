"""Training steps, embeddings, single images and memory of whole networks beside PyTorch at its best: eager and compiled,
NCHW and channels-last, from the same weights and images."""
import os
import subprocess
import sys
import time

import numpy as np
import torch
from measure import group_loss, in_turns, row

torch._dynamo.config.recompile_limit = 64  # two networks, two layouts, with gradients and without, share one forward()
CASES = {"bn_inception": (32, 227, 227, 100), "densenet161": (16, 256, 128, 751)}
TITLES = {"bn_inception": "BN-Inception", "densenet161": "DenseNet-161"}


class WithEmbedding(torch.nn.Module):
    """A published network that returns its pooled features and its logits."""

    def __init__(self, name, classes, **options):
        super().__init__()
        if name == "bn_inception":
            import pretrainedmodels

            self.net = pretrainedmodels.bninception(1000, None)
            self.net.last_linear = torch.nn.Linear(self.net.last_linear.in_features, classes)
            self.classifier = "last_linear"
        else:
            import torchvision

            self.net = getattr(torchvision.models, name)(weights=None, num_classes=classes, **options)
            self.classifier = "classifier"

    def forward(self, images):
        features = self.net.features(images)
        if self.classifier == "classifier":  # a DenseNet's features end before their last activation
            features = torch.relu(features)
        embedding = features.mean((2, 3))
        return embedding, getattr(self.net, self.classifier)(embedding)


class Theirs:
    def __init__(self, state, name, classes, images, layout, compiled, **options):
        self.network = WithEmbedding(name, classes, **options)
        self.network.net.load_state_dict(state)
        self.network.to(memory_format=layout)
        self.images = images.contiguous(memory_format=layout)
        self.one_image = self.images[:1].contiguous(memory_format=layout)
        self.labels = torch.arange(len(images)) // 4 % classes
        self.run = torch.compile(self.network) if compiled else self.network
        self.optimiser = torch.optim.RAdam(self.network.parameters(), lr=1e-4, foreach=True)
        self.loss = None

    def step(self):
        self.network.train()
        start = time.perf_counter()
        self.optimiser.zero_grad(set_to_none=True)
        loss = group_loss(*self.run(self.images), self.labels, None, 1, rows_may_be_empty=True)
        loss.backward()
        self.optimiser.step()
        self.loss = loss.item()
        return time.perf_counter() - start

    def embed(self, images=None):
        self.network.eval()
        start = time.perf_counter()
        with torch.inference_mode():
            self.embedding = self.run(self.images if images is None else images)[0]
        return time.perf_counter() - start

    def one(self):
        return self.embed(self.one_image)


class Ours:
    def __init__(self, setup, *arguments):
        self.process = subprocess.Popen([setup.program("gle-peer-network"), *map(str, arguments)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            raise SystemExit(f"gle-peer-network ended with {self.process.wait()}")
        return [float(word) for word in answer]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def close_to(found, expected, tolerance, what):
    off = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not off <= tolerance:
        raise SystemExit(f"{what}: the two sides differ by {off:.1e}, allowed {tolerance:.0e}")
    print(f"{what}: equal to {off:.1e}", flush=True)


def compare(setup, name):
    batch, height, width, classes = CASES[name]
    torch.manual_seed(0)
    state = WithEmbedding(name, classes).net.state_dict()
    weights, pictures, answer = (os.path.join(setup.folder, f"{name}{end}") for end in (".pth", ".npy", "-out.npy"))
    torch.save(state, weights)
    images = torch.randn(batch, 3, height, width)
    np.save(pictures, images.permute(0, 2, 3, 1).contiguous().numpy())

    ours = Ours(setup, name, classes, weights, pictures)
    theirs = {}
    for compiled in (False, True):
        for layout in (torch.contiguous_format, torch.channels_last):
            label = ("compiled" if compiled else "eager") + (", NHWC" if layout == torch.channels_last else ", NCHW")
            theirs[label] = Theirs(state, name, classes, images, layout, compiled)
    title = TITLES[name]
    first = next(iter(theirs.values()))
    ours.ask("embed", answer)
    first.embed()
    close_to(np.load(answer), first.embedding.numpy(), 1e-3, f"{title} embedding")
    loss = ours.ask("step")[1]
    first.step()
    close_to(np.array(loss), np.array(first.loss), 1e-3, f"{title} loss of the first step")

    works = [(f"{title} training step, batch {batch} x {height} x {width}", "step", 1.4, 2.0),
             (f"{title} embedding, batch {batch}", "embed", 1.6 if name == "bn_inception" else 1.5,
              2.5 if name == "bn_inception" else 2.0)]
    if name == "bn_inception":
        works.append((f"{title} embedding, one image at a time", "one", 1.5, 3.0))
    for work, what, at_least, aim in works:
        sides = {"ours": lambda: ours.ask(what)[0]}
        for label, peer in theirs.items():
            try:
                getattr(peer, what)()
                sides[label] = getattr(peer, what)
            except RuntimeError as error:  # torch.compile's code has been seen to fail, with AVX2
                print(f"{work}: PyTorch, {label} fails: {str(error).splitlines()[0]}", flush=True)
        best = in_turns(setup.rounds * (5 if what == "one" else 1), sides)
        mine = best.pop("ours")
        peer = min(best, key=best.get)
        print("   ".join(f"{label} {seconds * 1e3:.1f}" for label, seconds in best.items()), flush=True)
        yield row(work, f"PyTorch, {peer}", mine * 1e3, best[peer] * 1e3, "ms", at_least, aim)
    ours.close()


def rows(setup):
    for name in CASES:
        yield from compare(setup, name)


def memory_of_peer(name, efficient):
    batch, height, width, classes = CASES[name]
    state = WithEmbedding(name, classes).net.state_dict()
    options = {"memory_efficient": True} if efficient else {}
    peer = Theirs(state, name, classes, torch.randn(batch, 3, height, width), torch.channels_last, False, **options)
    for _ in range(2):
        peer.step()
    # Not getrusage(), which begins with what the parent had.
    print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))


def memory_rows(setup):
    """The most that is resident during two steps, each side in a process of its own. DenseNet recomputes on our side;
    of PyTorch's two ways the smaller counts."""
    for name, (batch, height, width, classes) in CASES.items():
        pictures = os.path.join(setup.folder, f"{name}.npy")
        np.save(pictures, np.random.default_rng(0).standard_normal((batch, height, width, 3), np.float32))
        recompute = ["recompute"] if name.startswith("densenet") else []
        ours = Ours(setup, name, classes, "-", pictures, *recompute)
        for _ in range(2):
            ours.ask("step")
        mine = ours.ask("memory")[0]
        ours.close()
        theirs = {}
        for way in ["plain"] + (["memory_efficient"] if recompute else []):
            theirs[way] = float(subprocess.run([sys.executable, __file__, name, way], check=True, capture_output=True,
                                               text=True).stdout)
        way = min(theirs, key=theirs.get)
        # The promise is a share: ours at most 0.7, at best 0.4 of theirs.
        yield row(f"{TITLES[name]} training step, peak memory", f"PyTorch, {way}", mine, theirs[way], "MiB", 1 / 0.7,
                  1 / 0.4)


if __name__ == "__main__":
    memory_of_peer(sys.argv[1], sys.argv[2] == "memory_efficient")
