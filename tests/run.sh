#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: as released, and without any dependency. `all` adds oneDNN and
# the address, undefined-behaviour and thread sanitizers, whose builds take long.
#   tests/run.sh [all | preset...]     default: release minimal
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh test

presets=("$@")
case "$*" in
  "") presets=(release minimal) ;;
  all) presets=(release minimal onednn asan tsan) ;;
esac
for preset in "${presets[@]}"; do
  start=$SECONDS
  echo "== $preset: build"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" -- --quiet
  echo "== $preset: test ($((SECONDS - start)) s)"
  ctest --preset "$preset" -j "$(nproc)" --no-tests=error
  echo "== $preset: done ($((SECONDS - start)) s)"
done
