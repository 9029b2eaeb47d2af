#!/usr/bin/env bash
# Runs gle-train by mpirun as users do: the same run by any number of ranks, checkpoints of some resumed by others.
#   train_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER MPIRUN
set -euo pipefail
train=$(realpath "$1")/gle-train data=$(realpath "$2") mpirun=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/../tools/expect.sh"
. "$(dirname "$0")/../tools/tiny_config.sh"
cd "$work"

tiny_config "$data/omniglot.tar.gz" >tiny.toml
cat >>tiny.toml <<END
[run]
seed = 2 # of seed 1 an activation lies on its kink within rounding, and one rank sees the other side
log_every = 1
[phase1]
steps = 4
batch = 16
[phase2]
steps = 4
classes = 4
samples = 4
[evaluation]
held_out = 0.05
every = 0
END
tiny=("$train" --config tiny.toml --threads 1)
ranks() { local n=$1; shift; echo "$mpirun" --allow-run-as-root --oversubscribe -n "$n" "${tiny[@]}" "$@"; }
# The numbers of two logs differ by less than a ten thousandth.
same_losses() {
  paste -d' ' <(grep -o '"loss": *[0-9.e+-]*' "$1/metrics.jsonl" | grep -o '[0-9.e+-]*$') \
    <(grep -o '"loss": *[0-9.e+-]*' "$2/metrics.jsonl" | grep -o '[0-9.e+-]*$') |
    awk 'NF != 2 || $1 - $2 > 1e-4 || $2 - $1 > 1e-4 { bad = 1 } END { exit bad || NR != 8 }' ||
    { echo "FAILED: the losses of $1 and $2 differ" >&2; cat "$1/metrics.jsonl" "$2/metrics.jsonl" >&2; exit 1; }
}

expect 0 "best" "${tiny[@]}" --out one
expect 0 "best" $(ranks 2) --out two
expect 0 "best" $(ranks 2) --out again
same_losses one two
cmp two/metrics.jsonl again/metrics.jsonl
cmp two/checkpoints/last.gle again/checkpoints/last.gle

# The moments in shards; from the middle of that run others go on.
expect 0 "best" $(ranks 2) --out shards --set distributed.shard_optimiser=true --set run.checkpoint_steps=2 \
  --set run.keep_last=9
same_losses one shards
middle=$(echo shards/checkpoints/*-step=000006.gle)
for n in 1 2 4; do
  cp -r shards "by$n"
  expect 0 "best" $(ranks "$n") --out "by$n" --resume "$middle" --set distributed.shard_optimiser=false
  same_losses one "by$n"
done

expect 2 "a batch of 16 images cannot be divided equally among 3 ranks" $(ranks 3) --out three
expect 2 "are for one process" $(ranks 2) --dry-run

# As torchrun starts them: on one host the first becomes mpirun.
torchrun=(env WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=$(hostname) MASTER_PORT=29500)
expect 0 "" "${torchrun[@]}" RANK=1 "${tiny[@]}" --out torch
[ ! -e torch ] || { echo "FAILED: the second rank of torchrun made a run" >&2; exit 1; }
expect 0 "best" "${torchrun[@]}" RANK=0 "${tiny[@]}" --out torch
cmp two/metrics.jsonl torch/metrics.jsonl
expect 2 "start it by MPI instead" "${torchrun[@]}" RANK=0 LOCAL_WORLD_SIZE=1 "${tiny[@]}" --out elsewhere
for n in 1 2; do
  expect 3 "No such file" $(ranks "$n") --data nosuch --out nowhere
done

# A signal to one rank stops all of them, with a checkpoint.
$(ranks 2) --out stopped --set phase1.steps=100000 --set phase1.epochs=100000 --no-progress >stopped.out 2>&1 &
run=$!
for _ in $(seq 300); do
  [ -s stopped/metrics.jsonl ] && break
  sleep 0.2
done
kill -TERM "$(pgrep -P "$run" | tail -n 1)"
code=0
wait "$run" || code=$?
[ "$code" -eq 75 ] || { echo "FAILED: ended with $code" >&2; cat stopped.out >&2; exit 1; }
ls stopped/checkpoints/last.gle >/dev/null
echo "train_test.sh: all is well"
