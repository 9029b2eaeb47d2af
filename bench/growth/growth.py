"""What our side costs as the work grows: batch, picture, classes, gallery, threads; bench/growth/run.sh builds it.

    growth.py BUILD FOLDER [part ...]

FOLDER is for data that is made on the way. Writes a curve a part to docs/growth/ and the figures to figures.json there,
which keeps those of parts that do not run."""
import json
import os
import subprocess
import sys

import plot

OUT = "docs/growth"
NETWORK = "bn_inception"


class Setup:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def words(self, name, *arguments, threads=None):
        environment = os.environ if threads is None else {**os.environ, "GLE_NUM_THREADS": str(threads)}
        return subprocess.run([os.path.join(self.build, "bench", name), *map(str, arguments)], stdout=subprocess.PIPE,
                              text=True, check=True, env=environment).stdout.split()

    def numbers(self, name, *arguments):
        return [float(word) for word in self.words(name, *arguments)]


def step(setup, batch, side, threads=None):
    """Milliseconds of a training step and of an embedding."""
    words = setup.words("gle-bench-step", NETWORK, batch, side, side, 3, threads=threads)
    return float(words[-2]), float(words[-1])


def batch(setup):
    rows = [(b, *step(setup, b, 227)) for b in (1, 2, 4, 8, 16, 32, 64)]
    return "Batch, 227 x 227", "images in a batch", "ms an image", {
        "training step": [(b, train / b) for b, train, _ in rows], "embedding": [(b, embed / b) for b, _, embed in rows]}


def picture(setup):
    rows = [(side, *step(setup, 16, side)) for side in (64, 96, 128, 160, 192, 227, 256, 320)]
    return "Picture, batch 16", "side in pixels", "ms an image", {
        "training step": [(s, train / 16) for s, train, _ in rows], "embedding": [(s, embed / 16) for s, _, embed in rows]}


def classes(setup):
    rows = [(c, setup.numbers("gle-bench-refine", 60, c, 1024, 1, "batch"))
            for c in (100, 1000, 10_000, 100_000, 1_000_000)]
    return "Classes, n 60, D 1024, T 1, batch classes only", "classes", "us, forward + backward", {
        "Group Loss": [(c, t[0]) for c, t in rows], "with cross-entropy": [(c, t[1]) for c, t in rows],
        "cross-entropy alone": [(c, t[2]) for c, t in rows]}


def gallery(setup):
    """100 queries; re-ranking needs the neighbours of the whole gallery, so its work grows with the square."""
    search, rerank = [], []
    path, out = (os.path.join(setup.folder, name) for name in ("gallery.npy", "gallery-out.npy"))
    for rows in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        setup.numbers("gle-bench-retrieval", "make", path, rows + 100, 128, rows // 10)
        search.append((rows, setup.numbers("gle-bench-retrieval", "search", path, 100, 20)[0]))
        rerank.append((rows, setup.numbers("gle-bench-retrieval", "pairs", path, 100, 20, 6, 0.3, out)[0]))
        print(rows, search[-1][1], rerank[-1][1], flush=True)
    return "Gallery of 128 numbers, 100 queries", "gallery", "seconds", {
        "20 nearest neighbours": search, "re-ranking, k1 20, k2 6": rerank}


def threads(setup):
    rows = [(n, *step(setup, 32, 227, n)) for n in range(1, (os.cpu_count() or 1) + 1)]
    return "Threads, batch 32, 227 x 227", "threads", "ms an image", {
        "training step": [(n, train / 32) for n, train, _ in rows], "embedding": [(n, embed / 32) for n, _, embed in rows]}


PARTS = {part.__name__: part for part in (batch, picture, classes, gallery, threads)}


def main(build, folder, *chosen):
    unknown = set(chosen) - set(PARTS)
    if unknown:
        raise SystemExit(f"growth: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for place in (folder, OUT):
        os.makedirs(place, exist_ok=True)
    figures = os.path.join(OUT, "figures.json")
    kept = json.load(open(figures)) if os.path.exists(figures) else {}
    for name in chosen or PARTS:
        title, x_label, y_label, series = PARTS[name](Setup(build, folder))
        kept[name] = {"title": title, "x": x_label, "y": y_label, "series": series}
        for line, points in series.items():
            print(f"{title}, {line}: " + "  ".join(f"{x:g}: {y:.4g}" for x, y in points), flush=True)
        with open(os.path.join(OUT, name + ".svg"), "w") as out:
            out.write(plot.lines(title, x_label, y_label, series))
        with open(figures, "w") as out:
            json.dump(kept, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
