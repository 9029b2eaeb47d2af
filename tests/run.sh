#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: as released, without any dependency, with oneDNN, and under the
# address, undefined-behaviour and thread sanitizers.
#   tests/run.sh [preset...]     default: release minimal onednn asan tsan
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh test

presets=("$@")
[ $# -gt 0 ] || presets=(release minimal onednn asan tsan)
for preset in "${presets[@]}"; do
  start=$SECONDS
  echo "== $preset: build"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" -- --quiet
  echo "== $preset: test ($((SECONDS - start)) s)"
  ctest --preset "$preset" -j "$(nproc)"
  echo "== $preset: done ($((SECONDS - start)) s)"
done
