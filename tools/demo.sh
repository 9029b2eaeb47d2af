#!/usr/bin/env bash
# Installs what is missing, builds, and shows the engine at work on this machine: every op checked, a look at the bundled
# data, BN-Inception trained on it twice (with cross-entropy alone, and with the Group Loss), GL++ inference, a search,
# and a report of it all. What an earlier call has done is not done again; interrupted, it goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh build
echo "== building the programs (build/demo)"
options=(-DCMAKE_BUILD_TYPE=Release -DGLE_TESTS=OFF -DGLE_BENCH=OFF)
[ -e /dev/nvidiactl ] || options+=(-DGLE_CUDA=OFF)  # nvcc takes long, for nothing where there is no GPU
cmake -S . -B build/demo -G Ninja "${options[@]}" >/dev/null
quiet=()
[[ -t 1 || $(ninja --help 2>&1) != *--quiet* ]] || quiet=(-- --quiet)  # since 1.11
cmake --build build/demo "${quiet[@]}"
bin=build/demo/tools
echo "== every op, forward and backward: $bin/gle-doctor"
"$bin/gle-doctor"
echo "== the bundled drawings: $bin/gle-data check data/omniglot.tar.gz"
"$bin/gle-data" check data/omniglot.tar.gz
# train NAME ARGUMENTS...: 300 steps from scratch in runs/demo-NAME.
train() {
  local run=runs/demo-$1
  shift
  echo "== $bin/gle-train --config tools/configs/demo.toml --out $run $*"
  if [ -s "$run/summary.json" ]; then
    echo "done already; remove $run to train it again"
  else
    "$bin/gle-train" --config tools/configs/demo.toml --out "$run" --resume auto "$@"
  fi
}
# figures NAME: of the run's last evaluation, in percent.
figures() {
  sed -n 's/.*"R@1": \([0-9.]*\).*"mAP": \([0-9.]*\).*/\1 \2/p' "runs/demo-$1/summary.json" |
    awk '{ printf "R@1 %.1f  mAP %.1f", $1 * 100, $2 * 100 }'
}
train cross-entropy --set phase2.loss=cross_entropy
train group-loss

run=runs/demo-group-loss
echo "== GL++ inference: $bin/gle-eval $run data/omniglot.tar.gz --strategies all"
if [ ! -s "$run/eval.json" ]; then
  "$bin/gle-eval" "$run" data/omniglot.tar.gz --strategies all --preset cub --no-nmi --json "$run/eval.json" >"$run/eval.txt"
fi
cat "$run/eval.txt"
echo "== search: $bin/gle-embed $run data/omniglot.tar.gz --out $run/index; $bin/gle-search $run/index $run/query.png"
"$bin/gle-embed" "$run" data/omniglot.tar.gz --out "$run/index"
drawing=$(sed -n '2p' "$run/index/ids.csv" | cut -d, -f2)
tar -xzOf data/omniglot.tar.gz "${drawing##*.tar.gz/}" >"$run/query.png"
"$bin/gle-search" "$run/index" "$run/query.png" --k 5 --sheet "$run/found.png"
echo "== report: $bin/gle-report $run runs/demo-cross-entropy"
if [ ! -s "$run/report.html" ]; then
  "$bin/gle-report" "$run" runs/demo-cross-entropy
fi

cat <<END_OF_DEMO

Unseen alphabets, after as many steps from the same weights (percent):
  cross-entropy   $(figures cross-entropy)
  Group Loss      $(figures group-loss)

The report:  $PWD/$run/report.html
Your own pictures, a folder for each class (docs/tutorial.md):
  $bin/gle-data check PICTURES
  $bin/gle-train --config tools/configs/demo.toml --set data.path=PICTURES --set evaluation.on=held_out --out runs/mine
of photographs also with --set input.height=227 --set input.width=227 --set augment.mirror=0.5 --set augment.fill=0
END_OF_DEMO
