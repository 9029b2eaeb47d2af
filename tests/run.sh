#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: as released, without any dependency, where CUDA is installed
# the CUDA backend on the emulated device (cuda-host; no GPU needed), and where clang is the parsers' fuzz targets for
# ten seconds each. `all` fuzzes everything for thirty, and adds oneDNN and the address, undefined-behaviour and thread
# sanitizers, whose builds take long.
#   tests/run.sh [all | preset...]     default: release minimal, and cuda-host and fuzz where they can be built
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh test

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
cudnn=$(find -L "$(dirname "$nvcc")/../include" /usr/include -maxdepth 2 -name cudnn.h 2>/dev/null | head -1 || true)
cuda=()
if [ -x "$nvcc" ] && [ -n "$cudnn" ]; then
  cuda=(cuda-host)
elif [ $# -eq 0 ] || [ "$*" = all ]; then
  echo "== cuda-host: skipped, since nvcc or the headers of cuDNN are not installed"
fi

fuzz=()
if echo 'extern "C" int LLVMFuzzerTestOneInput() { return 0; }' |
  clang++ -xc++ -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null; then
  fuzz=(fuzz)
elif [ $# -eq 0 ] || [ "$*" = all ]; then
  echo "== fuzz: skipped, since clang++ with libFuzzer is not installed"
fi

presets=("$@")
fuzzing=(--seconds 30)
case "$*" in
  "") presets=(release minimal "${cuda[@]}" "${fuzz[@]}"); fuzzing=(--seconds 10 parsers) ;;
  all) presets=(release minimal onednn asan tsan "${cuda[@]}" "${fuzz[@]}") ;;
esac
quiet=()
[[ $(ninja --help 2>&1) != *--quiet* ]] || quiet=(-- --quiet)  # since 1.11
for preset in "${presets[@]}"; do
  start=$SECONDS
  if [ "$preset" = fuzz ]; then
    echo "== fuzz"
    tests/fuzz/run.sh "${fuzzing[@]}"
    echo "== fuzz: done ($((SECONDS - start)) s)"
    continue
  fi
  echo "== $preset: build"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" "${quiet[@]}"
  echo "== $preset: test ($((SECONDS - start)) s)"
  # Of the host's own kernels the other builds have seen enough.
  labels=()
  [ "$preset" != cuda-host ] || labels=(-L cuda)
  ctest --preset "$preset" -j "$(nproc)" --no-tests=error "${labels[@]}"
  echo "== $preset: done ($((SECONDS - start)) s)"
done
