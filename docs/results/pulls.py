"""What the Group Loss asks of pairs of pictures: the slope of a batch's loss over their similarity, by kind of pair, over
batches of a data set. Pairs whose similarity is clamped are left out.

    gle-embed RUN DATA --split train --out embedded
    gle-model import RUN/checkpoints/last.gle model.safetensors
    python3 docs/results/pulls.py embedded model.safetensors > docs/results/cub-pulls.json

Needs NumPy. Similarities are clamped, the diagonal is 0 and anchors are drawn, as in the runs of docs/results.md."""
import json
import struct
import sys

import numpy as np

BATCHES, CLASSES, SAMPLES, ANCHORS = 100, 8, 4, 1
KINDS = ["one class, neither an anchor", "one class, one an anchor", "one class, all", "two classes, neither an anchor"]
SETTINGS = [(50, 1), (24, 1), (24, 2), (24, 3), (24, 5), (10, 1), (3, 1), (3, 2), (3, 3), (1, 1), (1, 3)]  # temperature, T


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    return {name: np.frombuffer(data[start + at["data_offsets"][0]:start + at["data_offsets"][1]], np.float32).reshape(at["shape"])
            for name, at in header.items() if name != "__metadata__" and at["dtype"] == "F32"}


def slopes(similarity, prior, labels, judged, steps):
    """The derivative of the loss, a mean over the judged rows, by every similarity."""
    iterates = [prior]
    for _ in range(steps):
        support = iterates[-1] * (similarity @ iterates[-1])
        iterates.append(support / support.sum(1, keepdims=True))
    rows = np.flatnonzero(judged)
    diterate = np.zeros_like(prior)
    diterate[rows, labels[rows]] = -1 / (iterates[-1][rows, labels[rows]] + 1e-12) / len(rows)
    dsimilarity = np.zeros_like(similarity)
    for before, after in zip(iterates[-2::-1], iterates[:0:-1]):
        product = similarity @ before
        dsupport = (diterate - (diterate * after).sum(1, keepdims=True)) / (before * product).sum(1, keepdims=True)
        dproduct = dsupport * before
        dsimilarity += dproduct @ before.T
        diterate = dsupport * product + similarity.T @ dproduct
    return dsimilarity


def main():
    folder, model = sys.argv[1:]
    embeddings = np.load(f"{folder}/embeddings.npy").astype(np.float64)
    classes, labels = np.unique(np.load(f"{folder}/labels.npy"), return_inverse=True)
    weights = tensors(model)
    logits = embeddings @ weights["fc.weight"].T + weights["fc.bias"]
    centred = embeddings - embeddings.mean(1, keepdims=True)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)

    rng = np.random.default_rng(1)
    sums = {setting: np.zeros(len(KINDS)) for setting in SETTINGS}
    for _ in range(BATCHES):
        items = np.concatenate([rng.choice(np.flatnonzero(labels == label), SAMPLES, replace=False)
                                for label in rng.choice(len(classes), CLASSES, replace=False)])
        anchor = np.arange(len(items)) % SAMPLES < ANCHORS
        similarity = np.maximum(centred[items] @ centred[items].T, 0)
        np.fill_diagonal(similarity, 0)
        upper = np.triu(similarity > 0)
        same = labels[items][:, None] == labels[items]
        either = anchor[:, None] | anchor
        kinds = [upper & same & ~either, upper & same & either, upper & same, upper & ~same & ~either]
        for temperature, steps in SETTINGS:
            prior = np.exp((logits[items] - logits[items].max(1, keepdims=True)) / temperature)
            prior /= prior.sum(1, keepdims=True)
            prior[anchor] = np.eye(len(classes))[labels[items][anchor]]
            slope = slopes(similarity, prior, labels[items], ~anchor, steps)
            slope += slope.T
            sums[temperature, steps] += [slope[kind].mean() for kind in kinds]
    json.dump([{"temperature": temperature, "T": steps, **dict(zip(KINDS, total / BATCHES))}
               for (temperature, steps), total in sums.items()], sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
