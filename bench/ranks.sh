#!/usr/bin/env bash
# gle-bench-ranks on so many hosts: network namespaces with a device each, whose counters say what was sent.
#   bench/ranks.sh FOLDER_OF_BENCHES RANKS NETWORK BATCH_OF_A_RANK HEIGHT WIDTH STEPS sync|own
set -euo pipefail
bench=$(realpath "$1")/gle-bench-ranks hosts=$(realpath "$(dirname "$0")/../tests/distributed/hosts.sh")
count=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$hosts" "$count" bash -c '. ./hosts && "${on_hosts[@]}" "$@"' - "$bench" "$@"
