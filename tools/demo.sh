#!/usr/bin/env bash
# Installs what is missing, builds, and shows the engine at work on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh build
echo "building (build/demo) ..."
cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DGLE_TESTS=OFF -DGLE_BENCH=OFF >/dev/null
cmake --build build/demo -- --quiet
build/demo/tools/gle-doctor
