#!/usr/bin/env bash
# Builds the fuzz targets of the data room and runs each for a while on a copy of its corpus.
#   tests/data/fuzz/run.sh [SECONDS]     default: 30 each
set -euo pipefail
cd "$(dirname "$0")/../../.."
seconds=${1:-30}
names=(csv image json lists mat tar)
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${names[@]/%/_fuzz}" -- --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in "${names[@]}"; do
  cp -r "tests/data/fuzz/corpus/$name" "$work/$name"
  TMPDIR=$work build/fuzz/tests/data/fuzz/"${name}_fuzz" "$work/$name" -max_total_time="$seconds" -rss_limit_mb=1024 \
    -timeout=10 -max_len=65536 -artifact_prefix="$work/${name}_" >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  echo "$name: $(grep -E '^Done' "$work/log")"
done
