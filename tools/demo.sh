#!/usr/bin/env bash
# Installs what is missing, builds, and shows the engine at work on this machine: every op checked, a look at the bundled
# data, and BN-Inception trained on it twice: with cross-entropy alone, and then with the Group Loss.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh build
echo "building (build/demo) ..."
cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DGLE_TESTS=OFF -DGLE_BENCH=OFF >/dev/null
cmake --build build/demo -- --quiet
bin=build/demo/tools
echo "== every op, forward and backward: $bin/gle-doctor"
"$bin/gle-doctor"
echo "== the bundled drawings: $bin/gle-data check data/omniglot.tar.gz"
"$bin/gle-data" check data/omniglot.tar.gz
# train NAME ARGUMENTS...: 300 steps from scratch; the line with the figures goes to stdout.
train() {
  local name=$1
  shift
  echo "== $name: $bin/gle-train --config tools/configs/demo.toml $*" >&2
  "$bin/gle-train" --config tools/configs/demo.toml --out "runs/demo-$name" --force "$@" | tee /dev/stderr |
    sed -n 's/^last *//p'
}
plain=$(train cross-entropy --set phase2.loss=cross_entropy)
group=$(train group-loss)
echo
echo "Unseen alphabets, after as many steps from the same weights (percent):"
echo "  cross-entropy   $plain"
echo "  Group Loss      $group"
