"""Answers of the losses of pairs for tests/losses/fixtures/pair_losses.npz, in double precision.

    python tests/oracle/make_pair_loss_fixtures.py tests/losses/fixtures/pair_losses.npz

From pytorch-metric-learning where its definition is the published one: triplets (batch-hard miner; all, mean of those
not 0), multi-similarity with its miner, Proxy-Anchor. The others are written out with PyTorch: its contrastive loss is
not of squares, its Proxy-NCA counts the own proxy among the others, and it has no semi-hard rule of one negative a pair.
"""

import sys

import numpy as np
import pytorch_metric_learning
import torch
from pytorch_metric_learning import losses, miners

N, C, D = 24, 5, 12


def unit(x):
    return x / x.norm(dim=1, keepdim=True)


def distances(x):
    return torch.cdist(unit(x), unit(x), compute_mode="donot_use_mm_for_euclid_dist")


def contrastive(x, labels, proxies):
    d = distances(x)
    same = labels[:, None] == labels[None, :]
    i, j = torch.triu_indices(N, N, 1)
    return torch.where(same, d**2 / 2, torch.relu(1.2 - d) ** 2 / 2)[i, j].mean()


def triplet_hard(x, labels, proxies):
    return losses.TripletMarginLoss(margin=0.3, reducer=torch_mean())(x, labels, miners.BatchHardMiner()(x, labels))


def torch_mean():
    from pytorch_metric_learning import reducers

    return reducers.MeanReducer()


def triplet_all(x, labels, proxies):
    return losses.TripletMarginLoss(margin=0.3)(x, labels)


def triplet_semihard(x, labels, proxies):
    d = distances(x)
    terms = []
    for a in range(N):
        others = d[a][labels != labels[a]]
        for p in range(N):
            if p != a and labels[p] == labels[a]:
                beyond = others[others > d[a, p]]
                terms.append(torch.relu(0.3 + d[a, p] - (beyond.min() if len(beyond) else others.max())))
    return torch.stack(terms).mean()


def multi_similarity(x, labels, proxies):
    return losses.MultiSimilarityLoss(alpha=2, beta=20, base=0.5)(
        x, labels, miners.MultiSimilarityMiner(epsilon=0.1)(x, labels))


def proxy_nca(x, labels, proxies):
    d = torch.cdist(2 * unit(x), 2 * unit(proxies)) ** 2
    own = torch.nn.functional.one_hot(labels, C).bool()
    return (d[own] + torch.logsumexp(-d.masked_fill(own, float("inf")), 1)).mean()


def proxy_anchor(x, labels, proxies):
    loss = losses.ProxyAnchorLoss(C, D, margin=0.1, alpha=16).double()
    loss.proxies = torch.nn.Parameter(proxies.detach().clone())
    value = loss(x, labels)
    # Its parameter is a leaf of its own: carry the gradient over.
    grad, = torch.autograd.grad(value, loss.proxies, retain_graph=True)
    return value + (grad * (proxies - proxies.detach())).sum()


def main(path):
    generator = np.random.default_rng(5)
    labels = np.arange(N) % (C - 1)
    x = generator.normal(size=(N, D)).astype(np.float32)
    proxies = generator.normal(size=(C, D)).astype(np.float32)
    arrays = {
        "embeddings": x, "proxies": proxies, "labels": labels,
        "versions": f"numpy {np.__version__}, torch {torch.__version__}, "
                    f"pytorch-metric-learning {pytorch_metric_learning.__version__}",
    }
    for loss in (contrastive, triplet_hard, triplet_semihard, triplet_all, multi_similarity, proxy_nca, proxy_anchor):
        a = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        b = torch.tensor(proxies, dtype=torch.float64, requires_grad=True)
        value = loss(a, torch.tensor(labels), b)
        value.backward()
        name = loss.__name__
        arrays[name] = value.item()
        arrays[name + "_d_embeddings"] = a.grad.numpy()
        if b.grad is not None:
            arrays[name + "_d_proxies"] = b.grad.numpy()
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
