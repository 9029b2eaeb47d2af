#!/usr/bin/env python3
"""Writes tests/fixtures/ops_torch.txt: what PyTorch gives for a set of ops, forward and backward.

Run by hand, from anywhere, with a Python that has torch; the test suite only reads the file. Inputs are not stored: both
sides compute them from the same formula (formula() here, Fixture::formula in tests/torch_parity_test.cpp), and torch
works in double precision on them.
"""
import pathlib
import platform

import numpy
import torch
import torch.nn.functional as F

LINES = []


def formula(seed, shape):
    """Values in [-1, 1) that float32 holds exactly, from a hash of the seed and the element's index."""
    count = int(numpy.prod(shape))
    h = (numpy.arange(count, dtype=numpy.uint64) + 1) * 2654435761 + seed * 40503
    h &= 0xFFFFFFFF
    h ^= h >> 16
    h = (h * 2246822519) & 0xFFFFFFFF
    h ^= h >> 13
    h = (h * 3266489917) & 0xFFFFFFFF
    h ^= h >> 16
    return torch.from_numpy(((h >> 8).astype(numpy.float64) / 2**23 - 1).reshape(shape))


def leaf(seed, shape):
    return formula(seed, shape).requires_grad_()


def nchw(x):
    return x.permute(0, 3, 1, 2)


def nhwc(x):
    return x.permute(0, 2, 3, 1)


def begin(op, **options):
    words = [f"case {op}"]
    for name, value in options.items():
        numbers = value if isinstance(value, tuple) else (value,)
        words.append(name + "=" + ",".join(f"{n:.9g}" for n in numbers))
    LINES.append(" ".join(words))


def store(name, tensor):
    values = tensor.detach().contiguous().reshape(-1)
    LINES.append(f"tensor {name} {' '.join(map(str, tensor.shape))}")
    words = [f"{v:.9g}" for v in values.tolist()]
    for i in range(0, len(words), 10):
        LINES.append(" ".join(words[i : i + 10]))


def store_gradients(y, **leaves):
    y.backward(formula(9, tuple(y.shape)))
    for name, x in leaves.items():
        store("d" + name, x.grad)


def conv2d(x, w, stride, pad, bias):
    begin("conv2d", x=x, w=w, stride=stride, pad=pad, bias=bias)
    tx, tw, tb = leaf(1, x), leaf(2, w), leaf(3, (w[0],)) if bias else None
    y = nhwc(F.conv2d(nchw(tx), nchw(tw), tb, stride, pad))
    store("y", y)
    store_gradients(y, x=tx, w=tw, **({"bias": tb} if bias else {}))


def batch_norm(x, training, slope, momentum, eps):
    begin("batch_norm", x=x, training=int(training), slope=slope, momentum=momentum, eps=eps)
    c = (x[-1],)
    tx, gamma, beta = leaf(1, x), leaf(2, c), leaf(3, c)
    mean, var = formula(4, c).clone(), formula(5, c) + 1.5
    z = F.batch_norm(nchw(tx) if len(x) == 4 else tx, mean, var, gamma, beta, training, momentum, eps)
    y = F.leaky_relu(nhwc(z) if len(x) == 4 else z, slope)
    store("y", y)
    store("running_mean", mean)
    store("running_var", var)
    store_gradients(y, x=tx, gamma=gamma, beta=beta)


def pool(op, x, kernel, stride, pad, ceil, counted):
    begin(op, x=x, kernel=kernel, stride=stride, pad=pad, ceil=int(ceil), counted=int(counted))
    tx = leaf(1, x)
    if op == "max_pool":
        y = F.max_pool2d(nchw(tx), kernel, stride, pad, ceil_mode=ceil)
    else:
        y = F.avg_pool2d(nchw(tx), kernel, stride, pad, ceil_mode=ceil, count_include_pad=counted)
    store("y", nhwc(y))
    store_gradients(nhwc(y), x=tx)


def global_pool(x, share):
    begin("global_pool", x=x, share=share)
    tx = leaf(1, x)
    y = share * tx.amax((1, 2)) + (1 - share) * tx.mean((1, 2))
    store("y", y)
    store_gradients(y, x=tx)


def linear(x, w, bias):
    begin("linear", x=x, w=w, bias=bias)
    tx, tw, tb = leaf(1, x), leaf(2, w), leaf(3, (w[0],)) if bias else None
    y = F.linear(tx, tw, tb)
    store("y", y)
    store_gradients(y, x=tx, w=tw, **({"bias": tb} if bias else {}))


def rows(op, x, scale, function, **options):
    begin(op, x=x, scale=scale, **options)
    tx = (formula(1, x) * scale).requires_grad_()
    y = function(tx)
    store("y", y)
    store_gradients(y, x=tx)


def cross_entropy(x, smoothing, scale):
    begin("cross_entropy", x=x, smoothing=smoothing, scale=scale)
    tx = (formula(1, x) * scale).requires_grad_()
    labels = torch.arange(x[0]) * 7 % x[1]
    y = F.cross_entropy(tx, labels, label_smoothing=smoothing).reshape(1)
    store("y", y)
    store_gradients(y, x=tx)


def main():
    LINES.append(f"# torch {torch.__version__}, numpy {numpy.__version__}, python {platform.python_version()}")
    LINES.append("# written by tests/oracle/make_op_fixtures.py; tensors are in NHWC order, double precision")
    conv2d((2, 5, 7, 3), (4, 3, 3, 3), (1, 1), (1, 1), 1)
    conv2d((1, 9, 8, 5), (6, 1, 7, 5), (1, 1), (0, 3), 0)
    conv2d((2, 9, 9, 4), (5, 3, 3, 4), (2, 2), (1, 1), 1)
    conv2d((1, 11, 7, 3), (8, 7, 5, 3), (2, 3), (3, 2), 0)
    conv2d((2, 4, 4, 17), (9, 1, 1, 17), (1, 1), (0, 0), 1)
    conv2d((2, 4, 6, 3), (5, 1, 1, 3), (2, 2), (0, 0), 0)
    conv2d((1, 2, 3, 2), (3, 5, 5, 2), (1, 1), (2, 2), 1)
    conv2d((1, 6, 5, 16), (17, 2, 3, 16), (1, 1), (1, 0), 0)
    batch_norm((2, 3, 4, 5), True, 1.0, 0.1, 1e-5)
    batch_norm((2, 3, 4, 17), True, 0.0, 0.9, 1e-3)
    batch_norm((3, 2, 2, 8), True, 0.25, 0.1, 1e-5)
    batch_norm((6, 7), True, 0.0, 0.1, 1e-5)
    batch_norm((2, 3, 4, 5), False, 0.0, 0.1, 1e-5)
    batch_norm((6, 7), False, 1.0, 0.1, 1e-5)
    for ceil in (False, True):
        for op in ("max_pool", "average_pool"):
            for counted in (True, False) if op == "average_pool" else (True,):
                pool(op, (2, 7, 8, 3), (3, 3), (2, 2), (0, 0), ceil, counted)
                pool(op, (1, 8, 7, 5), (3, 3), (2, 2), (1, 1), ceil, counted)
                pool(op, (1, 6, 9, 2), (2, 4), (3, 2), (1, 2), ceil, counted)
                pool(op, (1, 5, 5, 3), (3, 3), (1, 1), (1, 1), ceil, counted)
    for share in (0.0, 1.0, 0.6):
        global_pool((2, 3, 5, 7), share)
    linear((4, 6), (5, 6), 1)
    linear((3, 17), (19, 17), 0)
    for scale in (4.0, 64.0):
        rows("softmax", (4, 9), scale, lambda x: F.softmax(x, 1))
        rows("log_softmax", (4, 9), scale, lambda x: F.log_softmax(x, 1))
    rows("centre_rows", (4, 9), 1.0, lambda x: x - x.mean(1, keepdim=True))
    for beta in (0.0, 0.25):
        rows("normalise_rows", (4, 9), 2.0, lambda x: F.normalize(x) + beta * x, beta=beta)
    for smoothing in (0.0, 0.1):
        for scale in (4.0, 128.0):
            cross_entropy((6, 11), smoothing, scale)
    path = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "ops_torch.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(LINES) + "\n")


if __name__ == "__main__":
    main()
