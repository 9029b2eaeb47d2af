#!/usr/bin/env bash
# A build without CUDA neither defines nor needs a symbol of CUDA, cuBLAS, cuDNN or NCCL.
#   no_cuda_symbols_test.sh LIBRARY...
set -euo pipefail
[ $# -gt 0 ] || { echo "no libraries given"; exit 1; }
symbols=$(nm --extern-only "$@" | awk 'NF >= 2 {print $NF}' | sort -u)
[ -n "$symbols" ] || { echo "nm found no symbols"; exit 1; }
found=$(grep -E '^_*(cuda|cublas|cudnn|nccl|cu)[A-Z]|simt|fake_cuda' <<<"$symbols" || true)
if [ -n "$found" ]; then
  echo "symbols of CUDA:"
  echo "$found"
  exit 1
fi
echo "$# libraries, $(wc -l <<<"$symbols") symbols, none of CUDA"
