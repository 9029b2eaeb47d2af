"""Writes tests/training/fixtures/trajectory.npz: the losses of ten training steps of BN-Inception (pretrainedmodels) with
the Group Loss and RAdam as METHOD has them, in double precision, from weights and images that the formula of
network_fixtures.py gives.
"""
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

sys.argv = sys.argv[:1]
source = (pathlib.Path(__file__).resolve().parent / "network_fixtures.py").read_text()
exec(source[:source.index("folder = pathlib")])  # its formula and its network, without its fixtures

CLASSES_IN_BATCH, SAMPLES, SIZE, RATE, STEPS = 4, 3, 64, 1e-4, 10
TEMPERATURE, REFINEMENTS, DECAY = 4.0, 2, 1e-3
labels = torch.arange(CLASSES_IN_BATCH).repeat_interleave(SAMPLES) * 2
anchors = torch.arange(len(labels)) % SAMPLES == 0


def group_loss(e, z):
    e = e - e.mean(1, keepdim=True)
    e = e / e.norm(dim=1, keepdim=True)
    w = F.relu(e @ e.T)
    x = torch.softmax(z / TEMPERATURE, 1)
    x = torch.where(anchors[:, None], F.one_hot(labels, z.shape[1]).double(), x)
    for _ in range(REFINEMENTS):
        x = x * (w @ x)
        x = x / x.sum(1, keepdim=True)
    return -torch.log(x[torch.arange(len(labels)), labels] + 1e-12).mean()


def radam(p, m, v, g, t, b1=0.9, b2=0.999, eps=1e-8):
    m.mul_(b1).add_(g, alpha=1 - b1)
    v.mul_(b2).addcmul_(g, g, value=1 - b2)
    longest = 2 / (1 - b2) - 1
    rho = longest - 2 * t * b2**t / (1 - b2**t)
    p.mul_(1 - RATE * DECAY)
    if rho >= 5:
        r = ((1 - b2**t) * (rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho)) ** 0.5
        p.sub_(RATE * r / (1 - b1**t) * m / (v.sqrt() + eps))
    else:
        p.sub_(RATE / (1 - b1**t) * m)


def run(dtype):
    net = Net("bn_inception", {}, 0.1).to(dtype).train()
    state = {k: (torch.zeros_like(p), torch.zeros_like(p)) for k, p in net.named(state=False)}
    rows = []
    for step in range(1, STEPS + 1):
        x = torch.tensor(uniform("batch %d" % step, len(labels) * 3 * SIZE * SIZE)).reshape(-1, 3, SIZE, SIZE)
        e, z = net(x.to(dtype))
        group, plain = group_loss(e, z), F.cross_entropy(z, labels)
        net.zero_grad()
        (group + plain).backward()
        norm = sum((p.grad**2).sum() for _, p in net.named(state=False)) ** 0.5
        rows.append([(group + plain).item(), group.item(), plain.item(), norm.item()])
        with torch.no_grad():
            for k, p in net.named(state=False):
                radam(p, *state[k], p.grad, step)
    return numpy.array(rows)


rows = run(torch.float64)
folder = pathlib.Path(__file__).resolve().parent.parent / "training" / "fixtures"
numpy.savez_compressed(folder / "trajectory.npz", rows=rows, labels=labels.numpy(), size=SIZE, rate=RATE, decay=DECAY,
                       temperature=TEMPERATURE, refinements=REFINEMENTS, classes=CLASSES,
                       versions="torch %s pretrainedmodels %s numpy %s" % (
                           torch.__version__, pretrainedmodels.__version__, numpy.__version__))
print(rows)
