"""Forward + backward of the Group Loss beside the same composed of PyTorch's ops, and beside cross-entropy alone."""
import time

import torch
from measure import group_loss, row


def best_microseconds(work, budget=0.6):
    for _ in range(3):
        work()
    start = time.perf_counter()
    work()
    rounds = max(5, min(500, int(budget / (time.perf_counter() - start))))
    best = float("inf")
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

    return best_microseconds(group)


def rows(setup):
    for n, classes, steps, at_least, aim in [(54, 100, 1, 10, 20), (54, 100, 4, 10, 20), (60, 1000, 1, 5, 10),
                                             (60, 11318, 1, 5, 10), (60, 11318, 4, 5, 10)]:
        theirs = mine = float("inf")
        for _ in range(setup.rounds):
            mine = min(mine, setup.ours("gle-bench-refine", n, classes, 1024, steps, "dense")[0])
            theirs = min(theirs, peer(n, classes, 1024, steps))
        yield row(f"Group Loss, n {n}, C {classes:,}, D 1024, T {steps}", "PyTorch, composed", mine, theirs, "us",
                  at_least, aim)
    for steps in (1, 4):
        both, alone = min((setup.ours("gle-bench-refine", 60, 11318, 1024, steps, "batch")[1:]
                           for _ in range(setup.rounds)), key=lambda t: t[0] / t[1])
        yield row(f"Group Loss of the batch's classes and cross-entropy, n 60, C 11,318, T {steps}",
                  "our cross-entropy alone", both, alone, "us", 1 / 1.5)
