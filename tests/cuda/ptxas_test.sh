#!/usr/bin/env bash
# Compiles a kernel file by nvcc and asserts what ptxas says of each kernel: no stack frame, no spills, and registers
# and static shared memory within its line of the budgets, the most of all its instances and architectures.
#   ptxas_test.sh NVCC "LAUNCHER" SOURCE_DIR FILE.cu BUDGETS ARCHITECTURE...
#   MEASURE=1: prints the lines that the budgets should have instead
set -euo pipefail
nvcc=$1 launcher=$2 root=$3 file=$4 budgets=$5
shift 5
object=$(mktemp --suffix=.o)
trap 'rm -f "$object"' EXIT

codes=()
for architecture in "$@"; do
  number=${architecture%-*}
  codes+=(-gencode "arch=compute_$number,code=sm_$number")
done
# shellcheck disable=SC2086
said=$($launcher "$nvcc" -std=c++20 -O3 -DNDEBUG -I"$root" "${codes[@]}" -Xcompiler=-fPIC -Xptxas=-v -c "$root/engine/cuda/$file" \
  -o "$object" 2>&1) || { echo "$said" >&2; exit 1; }

echo "$said" | c++filt | awk -v file="$file" -v budgets="$budgets" -v measure="${MEASURE:-0}" '
  function number_before(text,   at) {
    at = match($0, "[0-9]+ " text)
    return at ? substr($0, at) + 0 : 0
  }
  BEGIN {
    while ((getline line < budgets) > 0) {
      if (line !~ /^#/ && split(line, field, " ") == 4 && field[1] == file) {
        registers[field[2]] = field[3]
        shared[field[2]] = field[4]
      }
    }
  }
  /Compiling entry function/ {
    name = $0
    sub(/.*entry function .(void )?/, "", name)
    gsub(/\(anonymous namespace\)::/, "", name)
    sub(/[<(].*/, "", name)
    sub(/.*::/, "", name)
    sub(/\047.*/, "", name)
    architecture = $NF
    seen[name] = 1
    ++kernels
  }
  /bytes stack frame/ {
    if (number_before("bytes stack frame") + number_before("bytes spill stores") + number_before("bytes spill loads") > 0) {
      print file ": " name " for " architecture ":" $0
      failed = 1
    }
  }
  /Used [0-9]+ registers/ {
    used = number_before("registers")
    bytes = number_before("bytes smem")
    if (used > most_registers[name]) most_registers[name] = used
    if (bytes > most_shared[name]) most_shared[name] = bytes
    if (measure) next
    if (!(name in registers)) {
      print file ": " name " has no line in " budgets
      failed = 1
    } else if (used > registers[name] || bytes > shared[name]) {
      print file ": " name " for " architecture ": " used " registers and " bytes " bytes of shared memory, budget " registers[name] " and " shared[name]
      failed = 1
    }
  }
  END {
    if (measure) {
      for (name in seen) printf "%-26s %-34s %3d %6d\n", file, name, most_registers[name], most_shared[name]
      exit failed
    }
    for (name in registers) if (!(name in seen)) {
      print file ": a budget for " name ", which is not there"
      failed = 1
    }
    if (kernels == 0) {
      print file ": ptxas spoke of no kernel"
      failed = 1
    }
    if (!failed) print file ": " kernels " kernels, no spills, within their budgets"
    exit failed
  }'
