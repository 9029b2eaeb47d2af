"""Answers of torchreid's evaluation (Market-1501's rules) for tests/retrieval/fixtures/torchreid.npz.

    python tests/oracle/make_ranking_fixtures.py TORCHREID/torchreid/reid/metrics/rank.py OUT.npz

The first path is the file in the unpacked source of the PyPI package torchreid 0.2.5; it is loaded alone, as the package
wants more than it needs. torchreid never sees junk: its data sets leave id -1 out, and so does this script before it
asks. Distances of a query all differ: torchreid's sort leaves the order of equal ones open.
"""

import importlib.util
import sys
import warnings

import numpy as np

CASES, MAX_RANK = 60, 10

spec = importlib.util.spec_from_file_location("rank", sys.argv[1])
rank = importlib.util.module_from_spec(spec)
warnings.simplefilter("ignore")
spec.loader.exec_module(rank)

rng = np.random.default_rng(20)
arrays = {"versions": np.array(f"torchreid 0.2.5 rank.py, numpy {np.__version__}"), "cases": np.array(CASES)}
for case in range(CASES):
    queries, gallery = int(rng.integers(3, 13)), int(rng.integers(20, 90))
    people, cameras = int(rng.integers(2, 9)), int(rng.integers(1, 6)) + 1
    q_ids, g_ids = rng.integers(1, people + 1, queries), rng.integers(1, people + 1, gallery)
    q_cameras, g_cameras = rng.integers(0, cameras, queries), rng.integers(0, cameras, gallery)
    g_ids[rng.random(gallery) < 0.15 * (case % 3)] = 0  # distractors
    g_ids[rng.random(gallery) < 0.15 * (case % 2)] = -1  # junk
    if case % 4 == 0:
        q_ids[0] = people + 5  # without a match
    distances = np.stack([rng.permutation(gallery) for _ in range(queries)])
    counts = g_ids != -1
    cmc, mean_ap = rank.evaluate_rank(
        distances[:, counts].astype(np.float32), q_ids, g_ids[counts], q_cameras, g_cameras[counts], max_rank=MAX_RANK,
        use_cython=False,
    )
    arrays |= {
        f"{case}/distances": distances.astype("u1"), f"{case}/query_ids": q_ids.astype("i4"),
        f"{case}/gallery_ids": g_ids.astype("i4"), f"{case}/query_cameras": q_cameras.astype("i4"),
        f"{case}/gallery_cameras": g_cameras.astype("i4"), f"{case}/cmc": cmc.astype("f4"), f"{case}/map": mean_ap,
    }
np.savez_compressed(sys.argv[2], **arrays)
