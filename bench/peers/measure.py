"""What every comparison shares: where our programs are, how turns are taken, and what a row says."""
import os
import subprocess
from dataclasses import dataclass

import torch
import torch.nn.functional as F

TEMPERATURE = 24.0


@dataclass
class Setup:
    build: str  # of ours: build/release
    folder: str  # for data that is made on the way
    cub: str | None  # CUB_200_2011, or none
    rounds: int

    def program(self, name):
        for room in ("bench", "tools"):
            path = os.path.join(self.build, room, name)
            if os.path.exists(path):
                return path
        raise SystemExit(f"{name} is not built in {self.build}")

    def ours(self, name, *arguments):
        out = subprocess.run([self.program(name), *map(str, arguments)], capture_output=True, text=True, check=True)
        return [float(word) for word in out.stdout.split()]


def row(work, peer, ours, theirs, unit, at_least, aim=None, more_is_better=False):
    ratio = ours / theirs if more_is_better else theirs / ours
    return {"work": work, "peer": peer, "ours": ours, "theirs": theirs, "unit": unit, "ratio": ratio,
            "at_least": at_least, "aim": aim}


def in_turns(rounds, sides):
    """The best of each side's seconds; every side warms up first, then they take turns."""
    best = {name: float("inf") for name in sides}
    for side in sides.values():
        side()
    for _ in range(rounds):
        for name, side in sides.items():
            best[name] = min(best[name], side())
    return best


def refined(similarities, x, steps, rows_may_be_empty):
    for _ in range(steps):
        s = x * (similarities @ x)
        total = s.sum(1, keepdim=True)
        x = torch.where(total > 0, s / total.clamp_min(1e-30), x) if rows_may_be_empty else s / total
    return x


def group_loss(embeddings, logits, labels, anchors, steps, temperature=TEMPERATURE, rows_may_be_empty=False):
    """The Group Loss composed of PyTorch's ops; anchors: a mask, or None. A row that is like no other keeps its labels,
    which costs ops of their own: only where such rows may be."""
    c = embeddings - embeddings.mean(1, keepdim=True)
    c = c / c.norm(dim=1, keepdim=True)
    w = torch.relu(c @ c.t())
    w = w - torch.diag(torch.diag(w))
    x = F.softmax(logits / temperature, 1)
    if anchors is not None:
        x = torch.where(anchors[:, None], F.one_hot(labels, logits.shape[1]).to(logits.dtype), x)
    return F.nll_loss(torch.log(refined(w, x, steps, rows_may_be_empty) + 1e-12), labels)
