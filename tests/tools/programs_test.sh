#!/usr/bin/env bash
# Runs the programs as users do: results, messages and exit codes.
#   programs_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER
set -euo pipefail
tools=$1 data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# expect CODE TEXT COMMAND...: the command ends with CODE and says TEXT.
expect() {
  local code=$1 text=$2 found=0
  shift 2
  "$@" >out 2>&1 </dev/null || found=$?
  if [ "$found" -ne "$code" ] || { [ -n "$text" ] && ! grep -qF -- "$text" out; }; then
    echo "FAILED: $* ended with $found, expected $code and '$text'; it said:" >&2
    cat out >&2
    exit 1
  fi
}
doctor=$tools/gle-doctor
expect 0 "example: GLE_ISA=avx2 gle-doctor" "$doctor" --help
expect 2 "try --help" "$doctor" --oracle
expect 6 "No such file" "$doctor" --oracle missing
expect 0 "fast: all ops agree" env CUDA_VISIBLE_DEVICES= "$doctor"
expect 2 "expected auto, cpu, cuda or cuda:1" "$doctor" --oracle "$work" --device gpu

model=$tools/gle-model

expect 0 "example: gle-model" "$model" --help
expect 2 "try --help" "$model"
expect 2 "try --help" "$model" info
expect 2 "there are: bn_inception" "$model" info vgg
expect 2 "HEIGHTxWIDTH" "$model" info densenet121 --input 12
expect 0 "parameters      10372740" "$model" info bn_inception --classes 100

expect 0 "" "$model" init densenet121 a.safetensors --classes 3 --seed 1
expect 0 "" "$model" init densenet121 b.safetensors --classes 3 --seed 1
expect 0 "" "$model" init densenet121 c.safetensors --classes 3 --seed 2
cmp a.safetensors b.safetensors
expect 0 "0 differ" "$model" diff a.safetensors b.safetensors
expect 1 "differ" "$model" diff a.safetensors c.safetensors
expect 0 "loaded" "$model" import a.safetensors d.safetensors --network densenet121
expect 0 "0 differ" "$model" diff a.safetensors d.safetensors
expect 4 "does not fit" "$model" import a.safetensors e.safetensors --network bn_inception
[ ! -e e.safetensors ]
head -c 100000 a.safetensors >cut.safetensors
expect 4 "cut.safetensors" "$model" import cut.safetensors e.safetensors
expect 6 "No such file" "$model" import nosuch.pth e.safetensors
expect 6 "nosuch" "$model" import a.safetensors nosuch/e.safetensors

# An array of two images of 64 x 64, all zeros.
{
  printf '\x93NUMPY\x01\x00\x76\x00'
  printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 64, 64, 3), }"
  head -c $((2 * 64 * 64 * 3 * 4)) /dev/zero
} >images.npy
expect 0 "loaded" "$model" run images.npy e.npy --weights a.safetensors
expect 0 "loaded" "$model" run images.npy f.npy --weights a.safetensors --batch 1 --slope 0.1 --max-share 0.5 --beta 0.1 --flip
[ "$(stat -c %s e.npy)" -eq $((128 + 2 * 1024 * 4)) ]
expect 3 "[N,H,W,3]" "$model" run e.npy f.npy --weights a.safetensors
expect 0 "loaded" "$model" export a.onnx --weights a.safetensors
grep -qF images a.onnx

expect 0 "4840 in 242 classes" "$tools/gle-data" check "$data/omniglot.tar.gz" --quiet
expect 0 "small" "$tools/gle-data" check "$data/omniglot.tar.gz" --lists-only --samples 30
expect 3 "No such file" "$tools/gle-data" check nosuch
expect 2 "A:B" "$tools/gle-data" check "$data/omniglot.tar.gz" --train-classes 5
mkdir -p set/one set/two
printf 'no picture' | tee set/one/a.jpg set/one/b.jpg set/two/a.jpg >set/two/b.jpg
expect 3 "broken" "$tools/gle-data" check set
echo "gle-model and gle-data: all as expected"
