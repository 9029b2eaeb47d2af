#!/usr/bin/env bash
# The demo's two runs for several seeds, one line each.
#   tools/demo-seeds.sh GLE_TRAIN [seed...]     default: 1 2 3
set -euo pipefail
cd "$(dirname "$0")/.."
train=$1
shift
[ $# -gt 0 ] || set -- 1 2 3
for seed in "$@"; do
  for loss in cross_entropy group_loss; do
    "$train" --config tools/configs/demo.toml --seed "$seed" --set "phase2.loss=$loss" --out "runs/demo-$loss-$seed" \
      --force --no-progress | sed -n "s/^last */seed $seed, $loss: /p;s/^steps */  /p"
  done
done
