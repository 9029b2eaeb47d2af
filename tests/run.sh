#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: as released, without any dependency, and under the address and
# undefined-behaviour sanitizers. `all` adds oneDNN and the thread sanitizer.
#   tests/run.sh [all | preset...]     default: release minimal asan
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh test

presets=("$@")
case "$*" in
  "") presets=(release minimal asan) ;;
  all) presets=(release minimal asan onednn tsan) ;;
esac
for preset in "${presets[@]}"; do
  start=$SECONDS
  echo "== $preset: build"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" -- --quiet
  echo "== $preset: test ($((SECONDS - start)) s)"
  ctest --preset "$preset" -j "$(nproc)"
  echo "== $preset: done ($((SECONDS - start)) s)"
done
