"""k-reciprocal re-ranking (Zhong et al.) in NumPy: every matrix dense, a full sort of every row, ties by index."""

import numpy as np


def dense_rerank(query, gallery, k1, k2, lam):
    x = np.concatenate([query, gallery])
    n = len(x)
    squares = (x**2).sum(1)
    d = squares[:, None] + squares[None, :] - 2 * (x @ x.T)
    np.maximum(d, 0, out=d)
    d /= d.max(1, keepdims=True)
    ranked = np.argsort(d, axis=1, kind="stable")

    def reciprocal(i, k):
        forward = ranked[i, : k + 1]
        return forward[(ranked[forward, : k + 1] == i).any(1)]

    v = np.zeros_like(d)
    half = int(np.around(k1 / 2))
    for i in range(n):
        core = reciprocal(i, k1)
        members = core
        for candidate in core:
            near = reciprocal(candidate, half)
            if len(np.intersect1d(near, core)) > 2 / 3 * len(near):
                members = np.append(members, near)
        members = np.unique(members)
        weights = np.exp(-d[i, members])
        v[i, members] = weights / weights.sum()
    d = d[: len(query)]
    if k2 > 1:
        v = np.stack([v[ranked[i, :k2]].mean(0) for i in range(n)])
    columns = [np.nonzero(v[:, j])[0] for j in range(n)]
    jaccard = np.zeros_like(d)
    for i in range(len(query)):
        shared = np.zeros(n, np.float32)
        for j in np.nonzero(v[i])[0]:
            rows = columns[j]
            shared[rows] += np.minimum(v[i, j], v[rows, j])
        jaccard[i] = 1 - shared / (2 - shared)
    return ((1 - lam) * jaccard + lam * d)[:, len(query) :]
