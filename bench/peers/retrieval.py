"""Nearest neighbours, k-means and re-ranking beside faiss and the dense algorithm in NumPy, on random clusters of the
sizes of Stanford Online Products (60,502 x 512, 11,316 classes) and Market-1501 (3,368 and 15,913, 2048 numbers)."""
import os
import time

import faiss
import numpy as np
from dense_rerank import dense_rerank
from measure import row

CLASSES = 11316


def data(setup, name, rows, dimensions, classes):
    path = os.path.join(setup.folder, name)
    if not os.path.exists(path):
        setup.ours("gle-bench-retrieval", "make", path, rows, dimensions, classes)
    return path, np.load(path)


def recall_of_faiss(x, labels):
    start = time.perf_counter()
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    first = np.full(len(x), len(x))
    for begin in range(0, len(x), 4096):
        _, found = index.search(x[begin : begin + 4096], 1001)
        rows = np.arange(begin, begin + len(found))
        others = found != rows[:, None]
        rank = np.cumsum(others, 1) - 1
        match = others & (labels[found] == labels[rows][:, None])
        has = match.any(1)
        first[rows[has]] = rank[has, match[has].argmax(1)]
    return time.perf_counter() - start, [(first < k).mean() for k in (1, 10, 100, 1000)]


def recall(setup):
    path, x = data(setup, "sop.npy", 60502, 512, CLASSES)
    mine, memory, *figures = setup.ours("gle-bench-retrieval", "recall", path, CLASSES)
    theirs, recalls = recall_of_faiss(x, np.arange(len(x)) % CLASSES)
    off = max(abs(a - b) for a, b in zip(figures, recalls))
    if off > 2 / len(x):
        raise SystemExit(f"recall: the two sides differ by {off:.1e}")
    yield row("Recall@1,10,100,1000, 60,502 x 512", "faiss IndexFlatL2, k = 1001", mine, theirs, "s", 3)
    yield row("its memory, of 4 GiB", "limit", memory, 4, "GiB", 1)


def kmeans(setup):
    path, x = data(setup, "sop.npy", 60502, 512, CLASSES)

    def iterations(count):
        k = faiss.Kmeans(x.shape[1], CLASSES, niter=count, seed=1, max_points_per_centroid=10**6,
                         min_points_per_centroid=1)
        start = time.perf_counter()
        k.train(x)
        return time.perf_counter() - start

    mine = setup.ours("gle-bench-retrieval", "kmeans", path, CLASSES, 4)[0]
    theirs = (iterations(5) - iterations(1)) / 4
    yield row("k-means, an iteration, 11,316 clusters", "faiss Kmeans", mine, theirs, "s", 1)


def rerank(setup):
    path, _ = data(setup, "sop.npy", 60502, 512, CLASSES)
    mine, memory, *_ = setup.ours("gle-bench-retrieval", "rerank", path, CLASSES, 50, 20, 0.94)
    yield row("re-ranking 60,502 against all, k1 50, k2 20", "limit", mine, 600, "s", 1)
    yield row("its memory (a dense matrix: 14.6 GB)", "limit", memory, 6, "GiB", 1)


def market(setup):
    path, x = data(setup, "market.npy", 3368 + 15913, 2048, 751)
    out = os.path.join(setup.folder, "market_final.npy")
    mine = setup.ours("gle-bench-retrieval", "pairs", path, 3368, 20, 6, 0.3, out)[0]
    start = time.perf_counter()
    expected = dense_rerank(x[:3368], x[3368:], 20, 6, np.float32(0.3))
    theirs = time.perf_counter() - start
    mine = min(mine, setup.ours("gle-bench-retrieval", "pairs", path, 3368, 20, 6, 0.3, out)[0])
    # Neighbours that are equally far but for rounding may change places, and a few sets with them.
    other = (np.abs(np.load(out) - expected) > 1e-5).mean()
    if other > 1e-5:
        raise SystemExit(f"re-ranking: {other:.1e} of the distances differ by more than 1e-5")
    yield row("re-ranking 3,368 queries, 15,913 gallery, 2048", "the published algorithm, NumPy", mine, theirs, "s", 10)


def rows(setup):
    for part in (recall, kmeans, rerank, market):
        yield from part(setup)
