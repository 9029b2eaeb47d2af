#!/usr/bin/env bash
# Every kernel has a row in gle-bench that begins with its name; a row of both directions begins with what they share.
# The rows run, once each but for convolutions, which take long.
#   bench_rows_test.sh GLE_BENCH BACKEND_HEADER
set -euo pipefail
rows=$("$1" --benchmark_list_tests)
missing=0
for kernel in $(grep -oE 'virtual (void|bool|double|const char\*) [a-z0-9_]+\(' "$2" | grep -oE '[a-z0-9_]+\($' | tr -d '('); do
  case $kernel in
    description | upload | download | synchronise | prefetch | await_prefetched | run_step) continue ;;  # no work of their own
    check_labels | group_loss_iterate) continue ;;  # not in a step's way
  esac
  if ! grep -qE "^(${kernel}|${kernel%_*}/${kernel##*_})(/|$)" <<<"$rows"; then
    echo "no row for $kernel"
    missing=1
  fi
done
[ "$missing" -eq 0 ]
"$1" --benchmark_min_time=0.0001 --benchmark_filter=-conv >/dev/null
echo "$(wc -l <<<"$rows") rows"
