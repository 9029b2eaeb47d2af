"""The Group Loss composed of PyTorch's ops beside ours, the same shapes in one run:

    python bench/peers/group_loss.py build/release/bench/gle-bench-refine [threads]

Each side warms up and takes its best; the two take turns, shape by shape. Exit code 1 if a promise is broken: dense at
least 10 times faster with 100 classes and 5 times with 11,318; with the batch's classes only, Group Loss and
cross-entropy together at most 1.5 times cross-entropy alone.
"""

import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

TEMPERATURE = 24.0


def similarities(e):
    c = e - e.mean(1, keepdim=True)
    c = c / c.norm(dim=1, keepdim=True)
    return torch.relu(c @ c.t())


def group_loss(e, z, labels, anchors, steps):
    w = similarities(e)
    x = F.softmax(z / TEMPERATURE, 1)
    one_hot = F.one_hot(labels, z.shape[1]).to(z.dtype)
    x = torch.where(anchors[:, None], one_hot, x)
    for _ in range(steps):
        x = x * (w @ x)
        x = x / x.sum(1, keepdim=True)
    return F.nll_loss(torch.log(x + 1e-12), labels)


def best_microseconds(work, budget=0.6):
    for _ in range(3):
        work()
    start = time.perf_counter()
    work()
    rounds = max(5, min(500, int(budget / (time.perf_counter() - start))))
    best = 1e30
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def peer(n, classes, features, steps):
    torch.manual_seed(0)
    e = torch.randn(n, features, requires_grad=True)
    z = torch.randn(n, classes, requires_grad=True)
    labels = torch.arange(n) // 9 * 7 % classes
    anchors = torch.arange(n) % 9 < 2

    def group():
        e.grad = z.grad = None
        group_loss(e, z, labels, anchors, steps).backward()

    def plain():
        z.grad = None
        F.cross_entropy(z, labels).backward()

    return best_microseconds(group), best_microseconds(plain)


def ours(program, n, classes, features, steps, columns):
    words = subprocess.run(
        [program, *map(str, (n, classes, features, steps)), columns], capture_output=True, text=True, check=True
    ).stdout.split()
    return [float(word) for word in words]


def main():
    program = sys.argv[1]
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    torch.set_num_threads(threads)
    os.environ["GLE_NUM_THREADS"] = str(threads)
    print(f"PyTorch {torch.__version__}, {threads} threads; forward + backward, microseconds")
    print(f"{'n':>4} {'C':>6} {'D':>5} {'T':>2}       {'PyTorch':>9} {'ours':>9} {'ratio':>7}   CE: {'PyTorch':>9} {'ours':>9}")
    kept = True
    for n, classes, steps, promise in [
        (54, 100, 0, 0), (54, 100, 1, 10), (54, 100, 4, 10),
        (60, 1000, 1, 0), (60, 11318, 1, 5), (60, 11318, 4, 5),
    ]:
        theirs, their_plain = peer(n, classes, 1024, steps)
        group, _, plain = ours(program, n, classes, 1024, steps, "dense")
        broken = theirs / group < promise
        kept &= not broken
        print(f"{n:4} {classes:6} {1024:5} {steps:2} dense {theirs:9.0f} {group:9.1f} {theirs / group:7.1f}   "
              f"    {their_plain:9.0f} {plain:9.1f}{'  BELOW ' + str(promise) if broken else ''}")
    for steps in (1, 4):
        group, both, plain = ours(program, 60, 11318, 1024, steps, "batch")
        broken = both / plain > 1.5
        kept &= not broken
        print(f"{60:4} {11318:6} {1024:5} {steps:2} batch classes: Group Loss {group:.0f}, with cross-entropy {both:.0f}, "
              f"cross-entropy alone {plain:.0f}: {both / plain:.2f} times{'  ABOVE 1.5' if broken else ''}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
