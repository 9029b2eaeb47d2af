#!/usr/bin/env bash
# gle-doctor to its end on the emulated GPUs: every op is run on both backends and agrees, and its table has no gap.
#   doctor_test.sh GLE_DOCTOR
set -euo pipefail
said=$("$1" --rounds 1) || { echo "$said"; exit 1; }
echo "$said"
for side in fast cuda:0 "cuda:0 tf32"; do
  grep -qx "$side: all ops agree" <<<"$said" || { echo "nothing of $side"; exit 1; }
done
rows=$(grep -cE '^[a-z].* +[0-9.]+( +[0-9.]+e[-+][0-9]+ +[0-9.]+)+$' <<<"$said")
[ "$rows" -ge 25 ] || { echo "only $rows rows"; exit 1; }
echo "$rows ops"
