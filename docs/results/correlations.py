"""How pictures of one class and of two correlate in embeddings of gle-embed, folder by folder; the last column compares
pairs of classes with those of the first folder.

    python3 docs/results/correlations.py FOLDER..."""
import sys

import numpy


def correlations(folder):
    embeddings = numpy.load(f"{folder}/embeddings.npy").astype(numpy.float64)
    labels = numpy.load(f"{folder}/labels.npy")
    centred = embeddings - embeddings.mean(axis=1, keepdims=True)
    centred /= numpy.maximum(numpy.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    return centred @ centred.T, labels


def class_pairs(w, labels):
    members = (labels[:, None] == numpy.unique(labels)).astype(numpy.float64)
    members /= members.sum(axis=0)
    means = members.T @ w @ members
    return means[numpy.triu_indices(len(means), 1)]


first = None
print("one class  two classes  of these at 0 or below  pairs of classes, with the first folder's")
for folder in sys.argv[1:]:
    w, labels = correlations(folder)
    other = labels[:, None] != labels
    one = ~other
    numpy.fill_diagonal(one, False)
    pairs = class_pairs(w, labels)
    first = pairs if first is None else first
    print(f"{w[one].mean():9.3f}  {w[other].mean():11.3f}  {100 * (w[other] <= 0).mean():21.1f}%  "
          f"{numpy.corrcoef(first, pairs)[0, 1]:.3f}  {folder}")
