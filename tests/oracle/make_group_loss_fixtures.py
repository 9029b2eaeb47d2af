"""Known answers of the Group Loss for tests/losses/fixtures/group_loss: a double-precision evaluation with PyTorch's
autograd, smaller batches of every kind. The file of pair losses beside them comes from make_pair_loss_fixtures.py.

    python tests/oracle/make_group_loss_fixtures.py tests/losses/fixtures/group_loss
"""

import os
import sys

import numpy as np
import torch


def evaluate(e, z, labels, anchors, temperature, steps, diagonal, negatives, batch_classes_only):
    e, z = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (e, z))
    n = len(e)
    c = e - e.mean(1, keepdim=True)
    c = c / c.norm(dim=1, keepdim=True)
    w = c @ c.T
    w = torch.relu(w) if negatives == "clamp" else w - w.min()
    if diagonal == "zero":
        w = w * (1 - torch.eye(n, dtype=w.dtype))
    columns = np.unique(labels) if batch_classes_only else np.arange(z.shape[1])
    targets = torch.tensor(np.searchsorted(columns, labels))
    x = torch.softmax(z / temperature, 1)[:, columns]
    x = x / x.sum(1, keepdim=True)
    one_hot = torch.nn.functional.one_hot(targets, len(columns)).to(x.dtype)
    fixed = torch.zeros(n, dtype=torch.bool)
    fixed[anchors] = True
    x = torch.where(fixed[:, None], one_hot, x)
    iterates = [x]
    for _ in range(steps):
        s = x * (w @ x)
        q = s.sum(1, keepdim=True)
        x = torch.where(q > 0, s / torch.where(q > 0, q, 1.0), x)
        iterates.append(x)
    losses = -torch.log(x[torch.arange(n), targets] + 1e-12)
    losses.mean().backward()
    return {
        "W": w.detach().numpy(),
        "X": torch.stack(iterates).detach().numpy(),
        "functional": np.array([(w * (x @ x.T)).sum().item() for x in iterates]),
        "loss_mean_over_all": losses.mean().item(),
        "loss_mean_over_non_anchors": losses.sum().item() / max(1, n - len(anchors)),
        "d_embeddings": e.grad.numpy() if e.grad is not None else np.zeros(e.shape),
        "d_logits": z.grad.numpy(),
    }


def main(folder):
    os.makedirs(folder, exist_ok=True)
    generator = np.random.default_rng(11)
    for name, classes, samples, anchors, c, d, temperature, steps, diagonal, negatives, some in [
        ("official_cub", 6, 9, 2, 100, 40, 24, 1, "one", "clamp", False),
        ("official_cub_4_steps", 6, 9, 2, 50, 40, 24, 4, "one", "clamp", False),
        ("official_cars", 5, 7, 3, 98, 40, 79, 1, "one", "clamp", False),
        ("official_sop", 10, 2, 1, 900, 16, 54, 1, "one", "clamp", False),
        ("paper_cub", 6, 9, 1, 100, 40, 24, 1, "zero", "clamp", False),
        ("paper_cars_4_steps", 5, 7, 3, 60, 40, 79, 4, "zero", "clamp", False),
        ("paper_batch_classes_only", 8, 4, 1, 700, 20, 20, 3, "zero", "clamp", True),
        ("paper_no_anchor", 8, 4, 0, 50, 30, 10, 3, "zero", "clamp", False),
        ("paper_shift", 6, 5, 1, 30, 40, 10, 2, "zero", "shift", False),
        ("steps_0", 6, 5, 1, 30, 20, 1, 0, "zero", "clamp", False),
        ("convergence_150_steps", 6, 5, 2, 8, 16, 10, 150, "zero", "clamp", False),
    ]:
        present = generator.choice(c, classes, replace=False)
        labels = np.repeat(present, samples)
        centres = generator.normal(size=(c, d))
        e = (centres[labels] + 1.5 * generator.normal(size=(len(labels), d))).astype(np.float32)
        z = generator.normal(size=(len(labels), c)) * 2
        z[np.arange(len(labels)), labels] += 3
        z = z.astype(np.float32)
        rows = np.concatenate([np.arange(k * samples, k * samples + anchors) for k in range(classes)]).astype(np.int64)
        np.savez_compressed(
            os.path.join(folder, name + ".npz"), embeddings=e, logits=z, labels=labels, anchors=rows,
            temperature=float(temperature), iterations=steps, diagonal=diagonal, negatives=negatives,
            batch_classes_only=some, versions=f"numpy {np.__version__}, torch {torch.__version__}",
            **evaluate(e, z, labels, rows, temperature, steps, diagonal, negatives, some))


if __name__ == "__main__":
    main(sys.argv[1])
