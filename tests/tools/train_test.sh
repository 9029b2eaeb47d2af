#!/usr/bin/env bash
# Runs gle-train as users do: results, messages, exit codes, signals.
#   train_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER
set -euo pipefail
train=$(realpath "$1")/gle-train data=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
. "$(dirname "$0")/tiny_config.sh"
cd "$work"

tiny_config "$data/omniglot.tar.gz" >tiny.toml
cat >>tiny.toml <<END
[phase1]
steps = 4
[phase2]
steps = 4
classes = 4
samples = 2
[evaluation]
held_out = 0.05
every = 0
END
tiny=("$train" --config tiny.toml --threads 1)

expect 0 "example: gle-train" "$train" --help
expect 0 "gle-train" "$train" --version
expect 2 "--nosuch" "$train" --nosuch
expect 0 "learning_rate = 0.5" "${tiny[@]}" --set phase2.learning_rate=0.5 --print-config
expect 0 "learning_rate = 0.5" env GLE_PHASE2_LEARNING_RATE=0.5 "${tiny[@]}" --print-config
expect 0 "learning_rate = 0.25" env GLE_PHASE2_LEARNING_RATE=0.5 "${tiny[@]}" --set phase2.learning_rate=0.25 --print-config
expect 2 "GLE_PHASE1_STEP: no key has this name; did you mean GLE_PHASE1_STEPS?" env GLE_PHASE1_STEP=7 "${tiny[@]}"
expect 0 "seed = 9" "${tiny[@]}" --set run.seed=8 --seed 9 --print-config
expect 0 "planned" "${tiny[@]}" --dry-run
expect 0 "everything else" "${tiny[@]}" --set phase1.steps=8 --profile --out profile

expect 2 "did you mean 'phase1.steps'" "${tiny[@]}" --set phase1.step=3
expect 2 "expected a whole number" "${tiny[@]}" --set phase1.steps=three
printf '[augment]\n# mirror = 0.5\n' >empty.toml
expect 0 "mirror" "$train" --config empty.toml --print-config
printf '[augmentation]\n' >wrong.toml
expect 2 "wrong.toml:1: there is no key 'augmentation." "$train" --config wrong.toml
printf '[phase1]\nsteps = "three"\n' >wrong.toml
expect 2 "wrong.toml:2: phase1.steps is \"three\"; expected a whole number" "$train" --config wrong.toml
expect 2 "the config cannot be read" "$train" --config nosuch.toml
expect 2 "path is empty" "$train"
# mistake CODE TEXT OPTIONS...: is told by the run, with and without --force, and by the dry run.
mistake() {
  expect "$1" "$2" "${tiny[@]}" "${@:3}" --out r0
  [ ! -e r0 ] || { echo "FAILED: ${*:3}: the mistake left a folder behind" >&2; exit 1; }
  expect "$1" "$2" "${tiny[@]}" "${@:3}" --out old --force
  cmp old/checkpoints/last.gle last.gle
  expect "$1" "$2" "${tiny[@]}" "${@:3}" --dry-run
}
expect 0 "best" "${tiny[@]}" --out old
cp old/checkpoints/last.gle last.gle
mistake 2 "there is no 'vgg'" --set network.name=vgg
mistake 3 "make 0 batches of 100000" --set phase1.batch=100000
mistake 3 "batches of 1000 classes" --set phase2.classes=1000
mistake 6 "nosuch.pth" --weights nosuch.pth
mistake 2 "radam cannot go on with the moments of sgd" --set phase1.optimiser=sgd --set phase2.fresh_optimiser=false
mistake 2 "drops after whole epochs" --set phase2.decay=steps --set phase2.drops=[0.5] \
  --set phase2.reload_best_at_drop=true --set evaluation.every=1
mistake 2 "phase2: group_loss compares pictures of a class, and samples = 1" --set phase2.samples=1
mistake 2 "group_loss.anchors = 2 of samples = 2 leaves no picture to learn from" --set group_loss.anchors=2
mistake 2 "evaluation.ks: 2.5 is not a whole number" --set evaluation.ks=[1,2.5]
mistake 2 "evaluation.ks: 4 stands twice" --set evaluation.ks=[4,1,4]
mistake 5 "nor does the smallest" --max-memory 100KiB
mistake 4 "last.gle" --set network.name=densenet121 --weights last.gle
expect 2 "choose between timed plans and determinism" "${tiny[@]}" --out r0 --deterministic --cuda-time-plans
expect 3 "No such file" "${tiny[@]}" --data nosuch --out r0
expect 6 "nosuch.gle: there is no such checkpoint" "$train" --resume nosuch.gle
expect 5 "phase1.batch = " "${tiny[@]}" --set phase1.batch=200 --max-memory 20MiB --out r1
[ ! -e r1 ]

expect 0 "best" "${tiny[@]}" --out run
for file in config.toml command.txt env.json metrics.jsonl summary.json time.json checkpoints/last.gle \
  checkpoints/best.gle; do
  [ -s "run/$file" ] || { echo "FAILED: there is no run/$file" >&2; exit 1; }
done
ls run/events.out.tfevents.* >/dev/null
grep -qE '"revision": "[^"]+"' run/env.json
processor='[^"]+'
! grep -q '^cpu family' /proc/cpuinfo || processor+=', family [0-9]+, model [0-9]+'
grep -qE "\"cpu\": \"$processor\"" run/env.json
[ "$(wc -l <run/metrics.jsonl)" -ge 3 ]
expect 0 "seed = 1" "$train" --config run/config.toml --print-config
expect 2 "there is a run already" "${tiny[@]}" --out run
expect 2 "there is a run already" "${tiny[@]}" --out run --dry-run
grep -q '"on": "held_out"' run/summary.json
expect 0 "best" "${tiny[@]}" --out run --force
cp run/summary.json summary.json
# A complete run goes on saying where it was made.
sed -i 's/"revision": "/&earlier-/' run/env.json
cp run/env.json env.json
expect 0 "steps      8" "${tiny[@]}" --out run --resume auto
cmp run/summary.json summary.json
cmp run/env.json env.json
# What is only told of a run stops none.
echo '{"steps": "8"}' >run/time.json
expect 0 "steps      8" "${tiny[@]}" --out run --resume auto
expect 2 "run.seed is 2 here and 1 in the run" "${tiny[@]}" --out run --resume auto --seed 2
expect 2 "which run" "${tiny[@]}" --resume auto
expect 0 "whole" "$train" --verify run/checkpoints/last.gle
cp run/checkpoints/last.gle other.gle
head -c 9999 other.gle >cut.gle
expect 4 "cut.gle: section 'weights' is cut short" "$train" --verify cut.gle
printf 'x' | dd of=other.gle bs=1 seek=9999 conv=notrunc 2>/dev/null
expect 4 "other.gle: section 'weights' is damaged" "$train" --verify other.gle
expect 4 "damaged" "${tiny[@]}" --resume other.gle --out r3
expect 6 "nosuch.gle: cannot open" "$train" --verify nosuch.gle

# A resumed run's config is its own, in what is printed too.
expect 0 "" "$train" --resume auto --out run --print-config
grep -qx "path = \"$data/omniglot.tar.gz\"" out
expect 0 "phase 1    4 steps" "$train" --resume auto --out run --dry-run --threads 1
expect 2 "run.seed is 2 here" "$train" --resume run/checkpoints/last.gle --seed 2 --dry-run
expect 2 "which run" "$train" --resume auto --print-config

# Back to an older checkpoint: later ones do not win any more. Another run is left alone.
expect 0 "best" "${tiny[@]}" --out back --set run.checkpoint_steps=1 --set run.keep_last=9
older=$(ls back/checkpoints/*-step=000005.gle)
find old -type f -not -name .lock -exec cksum {} + | sort >before
expect 2 "old: there is a run already, and $older is none of its checkpoints" "$train" --resume "$older" --out old
find old -type f -not -name .lock -exec cksum {} + | sort | cmp - before
cp "$older" elsewhere.gle
expect 2 "elsewhere.gle: is not in the folder checkpoints of a run; say --out DIR" "$train" --resume elsewhere.gle
expect 0 "steps      8" "$train" --resume elsewhere.gle --out branch --threads 1
[ -e branch/checkpoints/"$(basename "$older")" ]
expect 0 "steps      8" "$train" --resume elsewhere.gle --out old --force --threads 1
cmp old/metrics.jsonl branch/metrics.jsonl
expect 0 "steps      6" "$train" --resume "$older" --set phase2.steps=2 --threads 1
grep -qF "of later steps, removed: " out
[ "$(basename "$(ls back/checkpoints/epoch=* | tail -n 1)")" = "$(basename "$(ls back/checkpoints/*-step=000006.gle)")" ]
expect 0 "step 6" "$train" --verify back/checkpoints/last.gle
expect 0 "steps      6" "$train" --resume auto --out back --threads 1

# A complete run that is made longer stays so when it is killed. What is left to do at its end may be the evaluation alone.
expect 2 "say one of them" "$train" --resume auto --out back --force
"$train" --resume auto --out back --threads 1 --set phase2.steps=100000 --quiet >back.out 2>&1 &
pid=$!
until [ "$(tail -n 1 back/metrics.jsonl | sed -n 's/.*"step":\([0-9]*\),"kind":"training".*/\1/p')0" -ge 100 ]; do
  kill -0 $pid || { cat back.out >&2; exit 1; }
  sleep 0.05
done
kill -KILL $pid
wait $pid 2>/dev/null || true
expect 0 "steps = 100000" "$train" --resume auto --out back --print-config
step=$(ls back/checkpoints | sed -n 's/.*step=0*\([0-9]*\)\.gle$/\1/p' | sort -n | tail -n 1)
expect 0 "steps      $step" "$train" --resume auto --out back --threads 1 --set phase2.steps=3
grep -q "\"steps\": $step, .*\"R@1\"" back/summary.json
rm back/time.json
expect 0 "steps      $step" "$train" --resume auto --out back --threads 1
grep -q "\"steps\": $step" back/time.json

# A run that was killed before its first checkpoint goes on as it was begun, and not as another one.
mkdir killed
cp run/config.toml killed/
expect 2 "run.seed is 2 here and 1 in the run" "${tiny[@]}" --out killed --resume auto --seed 2
expect 0 "steps      8" "$train" --out killed --resume auto --threads 1
cmp run/metrics.jsonl killed/metrics.jsonl

# Other data than the run has learned from are refused, wherever they are; the same ones may have moved.
cp "$data/omniglot.tar.gz" moved.tar.gz
expect 0 "steps      9" "${tiny[@]}" --out killed --resume auto --data moved.tar.gz --set phase2.steps=5
mkdir fewer
tar -xzf moved.tar.gz -C fewer --wildcards '*_01.png' '*_02.png'
expect 3 "a resumed run keeps its data" "${tiny[@]}" --out killed --resume auto --data fewer --set phase2.steps=6
expect 3 "a resumed run keeps its data" "${tiny[@]}" --out killed --resume auto --data fewer --dry-run
expect 0 "classes have too few images, such as class" "${tiny[@]}" --data fewer --set phase2.samples=3 --out few
mkdir singles
tar -xzf moved.tar.gz -C singles --wildcards '*_01.png'
expect 3 "none of the 106 queries has a match" "${tiny[@]}" --data singles --set evaluation.on=test --out r0
expect 3 "none of the 106 queries has a match" "${tiny[@]}" --data singles --set evaluation.on=test --dry-run

expect 2 "fewer" "${tiny[@]}" --data fewer --out fewer
[ ! -e fewer/config.toml ]

# A disk that takes no files, and one that takes none beyond a size.
expect 6 "making the folder failed" "${tiny[@]}" --out /proc/gle
(ulimit -f 64; expect 6 "File too large" "${tiny[@]}" --out full)
(ulimit -f 64; expect 6 "File too large" "${tiny[@]}" --set run.on_save_error=warn --out full2)
[ -z "$(find full -name '*.tmp')" ]

# A run in use, and signals: the first stops it with a checkpoint, SIGUSR1 writes one and goes on.
"${tiny[@]}" --out busy --set phase2.steps=100000 --set evaluation.on=none --quiet >busy.out 2>&1 &
pid=$!
until [ -s busy/metrics.jsonl ]; do sleep 0.1; done
expect 6 "the run is in use by process $pid" "${tiny[@]}" --out busy --resume auto
kill -USR1 $pid
until ls busy/checkpoints/epoch=* >/dev/null 2>&1; do sleep 0.1; done
kill -0 $pid
kill -TERM $pid
code=0
wait $pid || code=$?
[ "$code" -eq 75 ] || { echo "FAILED: SIGTERM ended in $code" >&2; cat busy.out >&2; exit 1; }
expect 0 "whole" "$train" --verify busy/checkpoints/last.gle
step=$("$train" --verify busy/checkpoints/last.gle | sed -n 's/.*step \([0-9]*\).*/\1/p')
grep -q "\"steps\": $step, \"from_step\": 0," busy/time.json
before=$(sed -n 's/.*"processor_seconds": \([0-9.]*\).*/\1/p' busy/time.json)
expect 0 "steps      $((step + 3))" "$train" --resume auto --out busy --threads 1 --set "phase2.steps=$((step - 1))"
sed -n "s/.*\"from_step\": 0,.*\"processor_seconds\": \([0-9.]*\).*/\1 > $before/p" busy/time.json | grep . |
  awk '{ exit !($1 > $3) }'

# A pipe whose reader is gone, as after `| tee log` and Ctrl-C, and a terminal that is closed: both end as ever.
for signal in INT HUP; do
  "${tiny[@]}" --out "left-$signal" --set phase2.steps=100000 --set evaluation.on=none > >(head -n 1 >/dev/null) 2>&1 &
  pid=$!
  until [ -s "left-$signal/metrics.jsonl" ]; do kill -0 $pid && sleep 0.1; done
  kill "-$signal" $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 75 ] || { echo "FAILED: SIG$signal ended in $code" >&2; exit 1; }
  expect 0 "whole" "$train" --verify "left-$signal/checkpoints/last.gle"
done

# What is not finite ends the run and names the batch.
expect 7 "is not finite; first:" "${tiny[@]}" --set phase1.learning_rate=1000 --set phase1.optimiser=sgd \
  --set phase1.steps=60 --out nan
ls nan/nonfinite/*/batch.json >/dev/null
expect 7 "the training has diverged" "${tiny[@]}" --set phase1.learning_rate=1000 --set phase1.optimiser=sgd \
  --set phase1.steps=2 --set phase2.epochs=0 --set phase2.steps=0 --out diverged
grep -q omniglot nan/nonfinite/*/batch.json
echo "gle-train: all as expected"
