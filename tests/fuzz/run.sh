#!/usr/bin/env bash
# Builds the fuzz targets (clang) and runs each from its corpus, as many at a time as there are cores. What breaks one is
# kept in build/fuzz/findings.
#   tests/fuzz/run.sh [--seconds N | --runs N] [parsers | TARGET...]     default: every target for 30 seconds
# `parsers` leaves out the targets that need the whole engine built.
set -euo pipefail
cd "$(dirname "$0")/../.."
limit=-max_total_time=30
case ${1:-} in
  --seconds) limit=-max_total_time=$2; shift 2 ;;
  --runs) limit=-runs=$2; shift 2 ;;
  --help | -h) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
targets=("$@")
if [ $# -eq 0 ] || [ "$*" = parsers ]; then
  targets=()
  for source in tests/fuzz/*_fuzz.cpp; do
    name=${source##*/}
    case "$*:$name" in
      parsers:geometry_* | parsers:model_file_*) ;;
      *) targets+=("${name%_fuzz.cpp}") ;;
    esac
  done
fi
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${targets[@]/%/_fuzz}" -- --quiet

mkdir -p build/fuzz/findings
work=$(TMPDIR=$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}") mktemp -d)
trap 'rm -rf "$work"' EXIT
run() {
  local name=$1 seeds=()
  mkdir -p "$work/$name/found"
  [ ! -d "tests/fuzz/corpus/$name" ] || seeds=("tests/fuzz/corpus/$name")
  if ! TMPDIR=$work/$name "build/fuzz/tests/fuzz/${name}_fuzz" "$limit" -rss_limit_mb=1024 -timeout=60 -max_len=8192 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/findings/${name}_" "$work/$name/found" "${seeds[@]}" \
    >"$work/$name/log" 2>&1; then
    tail -40 "$work/$name/log"
    echo "$name: FAILED"
    return 1
  fi
  awk -v name="$name" '/^#/ { for (i = 1; i < NF; ++i) if ($i == "cov:") edges = $(i + 1) }
    /^Done/ { print name ": " $2 " runs, " edges " edges seen, " $(NF - 1) " s" }' "$work/$name/log"
}
export -f run
export work limit
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run {}'
