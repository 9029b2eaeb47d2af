"""Re-ranking of a set against itself, for tests/retrieval/fixtures/rerank_doubled_50_20_085.npz.

    python tests/oracle/make_rerank_fixtures.py AUTHORS.npz OUT.npz

AUTHORS.npz holds `gallery`, k1, k2, lam and `final_distance`, what the authors' dense code gives for the set as queries
and as gallery. Every image then has a twin at the same distance, and that code leaves the order of twins to a sort that
is not stable. `by_index` is the same algorithm with the rule we have, ties by index; both are cut to every eighth row.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
from dense_rerank import dense_rerank

authors = np.load(sys.argv[1])
x = authors["gallery"]
by_index = dense_rerank(x.astype("f8"), x.astype("f8"), int(authors["k1"]), int(authors["k2"]), float(authors["lam"]))
rows = np.arange(0, len(x), 8)
np.savez_compressed(
    sys.argv[2], gallery=x, k1=authors["k1"], k2=authors["k2"], lam=authors["lam"], rows=rows,
    final_distance=authors["final_distance"][rows], by_index=by_index[rows].astype("f4"),
    versions=np.array(f"numpy {np.__version__}"),
)
