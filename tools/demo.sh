#!/usr/bin/env bash
# Installs what is missing, builds, and shows the engine at work on this machine: every op checked, a look at the bundled
# data and at a network.
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
echo "== a network for them: $bin/gle-model info bn_inception --classes 136 --input 64x64 --batch 72"
"$bin/gle-model" info bn_inception --classes 136 --input 64x64 --batch 72
