#!/usr/bin/env bash
# Installs what is missing, builds, and shows the engine at work on this machine: every op checked, a look at the bundled
# data, BN-Inception trained on it twice (with cross-entropy alone, and with the Group Loss), GL++ inference, a search,
# and a report of it all.
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
# train NAME ARGUMENTS...: 300 steps from scratch; the line with the figures goes to stdout.
train() {
  local name=$1
  shift
  echo "== $name: $bin/gle-train --config tools/configs/demo.toml $*" >&2
  "$bin/gle-train" --config tools/configs/demo.toml --out "runs/demo-$name" --force "$@" | tee /dev/stderr |
    sed -n 's/^last *//p'
}
plain=$(train cross-entropy --set phase2.loss=cross_entropy)
group=$(train group-loss)

run=runs/demo-group-loss
echo "== GL++ inference: $bin/gle-eval $run data/omniglot.tar.gz --strategies all"
"$bin/gle-eval" "$run" data/omniglot.tar.gz --strategies all --preset cub --no-nmi --json "$run/eval.json"
echo "== search: $bin/gle-embed, $bin/gle-search"
"$bin/gle-embed" "$run" data/omniglot.tar.gz --out "$run/index" --overwrite
drawing=$(sed -n '2p' "$run/index/ids.csv" | cut -d, -f2)
tar -xzOf data/omniglot.tar.gz "${drawing##*.tar.gz/}" >"$run/query.png"
"$bin/gle-search" "$run/index" "$run/query.png" --k 5 --sheet "$run/found.png"
echo "== report: $bin/gle-report $run runs/demo-cross-entropy"
"$bin/gle-report" "$run" runs/demo-cross-entropy

cat <<END

Unseen alphabets, after as many steps from the same weights (percent):
  cross-entropy   $plain
  Group Loss      $group

The report:  $PWD/$run/report.html
Your own pictures, a folder for each class:
  $bin/gle-data check PICTURES
  $bin/gle-train --config tools/configs/demo.toml --set data.path=PICTURES --out runs/mine
END
