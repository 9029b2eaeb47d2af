#!/usr/bin/env bash
# Every comparison with PyTorch, torchvision, faiss and NumPy, side by side in one run on this machine: builds ours, sets
# up a Python environment of its own under build/, prints a table, updates docs/performance.md and writes
# bench/peers/results.json. Takes an hour or more on two cores, which nothing else should use.
#   bench/peers/run.sh [--avx2] [--cub CUB_200_2011] [--rounds N] [part ...]
#     part      networks, memory, group_loss, programs, retrieval, data; all if none is named
#     --avx2    both sides kept to AVX2; results go to bench/peers/results-avx2.json and a table of their own
#     --cub     the data set, for decoding and for a whole epoch; without it these rows are left out
set -euo pipefail
cd "$(dirname "$0")/../.."
extra=() parts=()
results=bench/peers/results.json
options=(--docs docs/performance.md)
while [ $# -gt 0 ]; do
  case "$1" in
    --avx2)
      export GLE_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2
      export FAISS_OPT_LEVEL=avx2 OPENBLAS_CORETYPE=Haswell
      results=bench/peers/results-avx2.json
      options=(--docs docs/performance.md --mark "peers, avx2")
      shift ;;
    --cub | --rounds) extra+=("$1" "$2"); shift 2 ;;
    --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1" >&2; exit 2 ;;
    *) parts+=("$1"); shift ;;
  esac
done
threads=${GLE_NUM_THREADS:-$(nproc)}
export GLE_NUM_THREADS=$threads OMP_NUM_THREADS=$threads

tools/install-packages.sh test
cmake --preset release >/dev/null
cmake --build --preset release -- --quiet gle-peer-network gle-bench-refine gle-bench-retrieval gle-bench-data gle-embed \
  gle-model gle-train

python=build/peers/bin/python
if [ ! -x "$python" ]; then
  command -v python3 >/dev/null || { echo "run.sh: the peers need python3 (python3-venv)" >&2; exit 1; }
  python3 -m venv build/peers
fi
"$python" -m pip install --quiet torch torchvision numpy faiss-cpu pretrainedmodels six pillow
"$python" bench/peers/compare.py --build build/release --folder build/peers/work --results "$results" \
  "${options[@]}" "${extra[@]}" "${parts[@]}"
