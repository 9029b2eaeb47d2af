#!/usr/bin/env bash
# Measures what a step, the Group Loss and a search cost as the work grows, and draws it for docs/performance.md. Needs
# python3, nothing of PyPI. An hour on two cores, which nothing else should use; most of it is re-ranking a million.
#   bench/growth/run.sh [batch | picture | classes | gallery | threads]...     all if none is named
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset release >/dev/null
cmake --build --preset release -- --quiet gle-bench-step gle-bench-refine gle-bench-retrieval
python3 bench/growth/growth.py build/release build/growth "$@"
