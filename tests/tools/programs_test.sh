#!/usr/bin/env bash
# Runs gle-doctor, gle-model, gle-data and gle-report as users do: results, messages and exit codes.
#   programs_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER
set -euo pipefail
tools=$1 data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
cd "$work"
doctor=$tools/gle-doctor
expect 0 "example: GLE_ISA=avx2 gle-doctor" "$doctor" --help
expect 2 "try --help" "$doctor" --oracle
expect 6 "No such file" "$doctor" --oracle missing
expect 0 "fast: all ops agree" env CUDA_VISIBLE_DEVICES= "$doctor"
expect 2 "--rounds" "$doctor" --rounds 0
expect 2 "expected auto, cpu, cuda or cuda:1" "$doctor" --oracle "$work" --device gpu

model=$tools/gle-model

expect 0 "example: gle-model" "$model" --help
expect 2 "try --help" "$model"
expect 2 "try --help" "$model" info
expect 2 "there are: bn_inception" "$model" info vgg
expect 2 "HEIGHTxWIDTH" "$model" info densenet121 --input 12
expect 0 "parameters      10372740" "$model" info bn_inception --classes 100
expect 2 "inception_v3: images of 32x32 are too small; the least square is 75x75" "$model" info inception_v3 --input 32x32
expect 2 "bn_inception: images of 4x4 are too small" "$model" info bn_inception --input 4x4
expect 0 "not possible: batch_norm: training needs" "$model" info inception_v3 --input 97x97

expect 0 "" "$model" init densenet121 a.safetensors --classes 3 --seed 1
expect 0 "" "$model" init densenet121 b.safetensors --classes 3 --seed 1
expect 0 "" "$model" init densenet121 c.safetensors --classes 3 --seed 2
cmp a.safetensors b.safetensors
expect 0 "0 differ" "$model" diff a.safetensors b.safetensors
expect 1 "differ" "$model" diff a.safetensors c.safetensors
expect 0 "loaded" "$model" import a.safetensors d.safetensors --network densenet121
expect 0 "0 differ" "$model" diff a.safetensors d.safetensors
expect 0 "" "$model" import d.safetensors again.safetensors
expect 0 "0 differ" "$model" diff d.safetensors again.safetensors
expect 4 "does not fit bn_inception: it says that it is of densenet121" "$model" import a.safetensors e.safetensors --network bn_inception
expect 0 "densenet121" "$model" info a.safetensors
for line in "format          safetensors" "classes         3" "embedding       1024" "input           224x224 from the middle of pictures of short side 256, RGB"; do
  grep -qxF "$line" out
done
grep -qE '^tensors         [0-9]+ of [0-9]+ numbers' out
expect 0 "features.conv0.weight" "$model" info a.safetensors --tensors
grep -qE '^features\.conv0\.weight +64x3x7x7$' out
mkdir -p run/checkpoints
cp a.safetensors run/checkpoints/last.gle
expect 0 "file            run/checkpoints/last.gle" "$model" info run
expect 4 "no run was saved there" "$model" info run/checkpoints
expect 2 "nosuch.safetensors: there is no such file or folder, and no network of this name" "$model" info nosuch.safetensors
expect 0 "" "$model" import run of_run.safetensors
expect 0 "0 differ" "$model" diff run of_run.safetensors
expect 2 "e.pth: a file of the kind .safetensors would be written, and the name says .pth" "$model" import a.safetensors e.pth
expect 2 "let it end in .onnx" "$model" export e.npz --weights run
printf '[run]\nseed = 1\n' >mine.toml
expect 4 "mine.toml: is not a file of weights" "$model" info mine.toml
sed 's/"gle":/"xyz":/' a.safetensors >bare.safetensors
expect 0 "network         not said" "$model" info bare.safetensors
expect 4 "does not fit bn_inception; --no-strict" "$model" import bare.safetensors e.safetensors --network bn_inception
expect 0 "loaded" "$model" import bare.safetensors d.safetensors --network densenet121
# What is not given stays as the file says.
expect 0 "" "$model" init densenet_tiny tiny.safetensors --classes 3 --embedding 16
sed -i 's/max_share\\":0.0/max_share\\":0.5/' tiny.safetensors
expect 0 "loaded" "$model" import tiny.safetensors five.safetensors --network densenet_tiny --classes 5
grep -qaF '\"classes\":5,\"embedding\":16,\"bnneck\":false,\"max_share\":0.5' five.safetensors
expect 0 "loaded" "$model" import a.safetensors s.safetensors --sha256 "$(sha256sum a.safetensors | cut -d ' ' -f 1)" --network densenet121
expect 4 "SHA-256" "$model" import a.safetensors e.safetensors --sha256 "$(printf %064d 0)"
expect 2 "64 digits" "$model" import a.safetensors e.safetensors --sha256 12ab
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
expect 2 "train classes 5:5: the range is empty" "$tools/gle-data" check "$data/omniglot.tar.gz" --train-classes 5:5
expect 2 "itself says which" "$tools/gle-data" check "$data/omniglot.tar.gz" --train-classes 0:5

report=$tools/gle-report
expect 0 "example: gle-report" "$report" --help
expect 2 "RUN is required" "$report"
expect 2 "no such folder" "$report" nosuch
mkdir -p '<b>/checkpoints'
expect 2 "no metrics.jsonl" "$report" '<b>'
printf '{"step":1,"kind":"training","loss":1}\n{"step":2,"kind":"training","loss":0.5}\n' >'<b>/metrics.jsonl'
expect 0 "report.html" "$report" '<b>'
grep -qF '<bdi>&lt;b&gt;</bdi>' '<b>/report.html'
grep -qF 'the run has no checkpoint' '<b>/report.html'
grep -qF 'gle-report: warning: the page has no pictures, map and refinement: the run has no checkpoint' out
expect 0 "one.html" "$report" '<b>' '<b>' --no-pictures --out one.html
grep -qF -- '--no-pictures was given' one.html
[ -z "$(grep -F warning out)" ]
expect 6 "nosuch" "$report" '<b>' --out nosuch/one.html
printf 'no checkpoint' >'<b>/checkpoints/best.gle'
printf '[data]\npath = "gone"\n' >'<b>/config.toml'
expect 0 "warning: the page has no pictures, map and refinement: the data set is not at gone; --data PATH" "$report" '<b>'
[ "$(grep -c warning out)" -eq 1 ]
expect 4 "best.gle" "$report" '<b>' --data "$data/omniglot.tar.gz"
expect 3 "nosuch" "$report" '<b>' --data nosuch

mkdir -p set/one set/two
printf 'no picture' | tee set/one/a.jpg set/one/b.jpg set/two/a.jpg >set/two/b.jpg
expect 3 "broken" "$tools/gle-data" check set
echo "gle-model, gle-data and gle-report: all as expected"
