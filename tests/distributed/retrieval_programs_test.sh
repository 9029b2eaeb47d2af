#!/usr/bin/env bash
# gle-embed and gle-eval of 1, 2 and 3 ranks write the bytes of one process, also after a stop; one rank speaks.
#   retrieval_programs_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER
set -euo pipefail
tools=$(realpath "$1") data=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/../tools/expect.sh"
cd "$work"
embed="$tools/gle-embed" eval="$tools/gle-eval"
# What mpirun passes on from stdout and stderr comes in any order.
same_lines() { cmp <(sort "$1") <(sort "$2"); }
ranks() { mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$@"; }
small="--input 32x32 --network densenet_tiny --batch 7 --threads 1 --workers 1 --no-progress"

mkdir set
tar xzf "$data/omniglot.tar.gz"
for class in $(ls test | head -n 8); do
  mkdir "set/$class"
  cp $(ls test/$class/*.png | head -n 8) "set/$class"
done
"$tools/gle-model" init densenet_tiny a.safetensors --seed 1

expect 0 "64 embeddings of" "$embed" a.safetensors set --out alone $small
expect 0 "" "$eval" a.safetensors set --strategies B,R --k1 5 --k2 3 --json alone.json $small
cp out alone.txt
for n in 1 2 3; do
  expect 0 "64 embeddings of" ranks $n "$embed" a.safetensors set --out "of$n" $small
  [ "$(grep -c embeddings out)" -eq 1 ]
  for file in embeddings.npy labels.npy ids.csv; do cmp "alone/$file" "of$n/$file"; done
  expect 0 "complete already" ranks $n "$embed" a.safetensors set --out "of$n" $small
  expect 0 "" ranks $n "$eval" a.safetensors set --strategies B,R --k1 5 --k2 3 --json "of$n.json" $small
  same_lines alone.txt out
  cmp alone.json "of$n.json"
  expect 0 "" ranks $n "$eval" alone --strategies R --k1 5 --k2 3 --bootstrap 50
  [ "$n" -eq 1 ] && cp out folder.txt
  same_lines folder.txt out
done

slowly="--batch 1 --input 448x448 --network densenet_tiny --threads 1 --workers 1 --no-progress"

# What one process began, three ranks finish, and the other way round.
begin() {  # CODE COMMAND...: is stopped after some rows, and ends with CODE
  local code=$1 found=0
  shift
  rm -rf parts
  "$@" a.safetensors many --out parts $slowly >begin.out 2>&1 &
  local pid=$!
  while [ "$(stat -c %s parts/embeddings.npy.partial 2>/dev/null || echo 0)" -lt $((128 + 20 * 128)) ]; do
    kill -0 "$pid" || { cat begin.out >&2; return 1; }
    sleep 0.01
  done
  kill -TERM "$pid"
  wait "$pid" || found=$?
  [ "$found" -eq "$code" ] || { echo "FAILED: ended with $found, expected $code" >&2; return 1; }
  [ -s parts/embeddings.npy.partial ] || { echo "FAILED: it was done before it was stopped" >&2; return 1; }
}
# As many as no machine embeds in the two seconds that mpirun takes to pass a signal on.
mkdir many
for class in $(ls test | head -n 60); do cp "test/$class/"*.png many; done
expect 0 "embeddings of" "$embed" a.safetensors many --out whole $slowly
begin 75 "$embed"
expect 0 "continues at image" ranks 3 "$embed" a.safetensors many --out parts $slowly
cmp whole/embeddings.npy parts/embeddings.npy
begin 1 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 "$embed"
expect 0 "embeddings of" "$embed" a.safetensors many --out parts $slowly
cmp whole/embeddings.npy parts/embeddings.npy

# One rank's trouble ends all, with its exit code.
printf 'no picture' >"$(ls set/*/*.png | tail -n 1)"
expect 3 "rank" ranks 3 "$embed" a.safetensors set --out broken $small
expect 2 "another job" ranks 3 "$embed" a.safetensors many --out alone $small
echo "gle-embed and gle-eval over ranks: all as expected"
