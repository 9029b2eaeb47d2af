#!/usr/bin/env bash
# Runs gle-tune as users do: a search that is killed, stopped and resumed against one that is not; messages, exit codes.
#   tune_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER THREADS      as many threads as must not change a result
set -euo pipefail
tools=$(realpath "$1") data=$(realpath "$2") threads=$3
tune=$tools/gle-tune
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
. "$(dirname "$0")/tiny_config.sh"
cd "$work"

tiny_config "$data/omniglot.tar.gz" >tiny.toml
cat >>tiny.toml <<END
[run]
checkpoint_steps = 1
[phase1]
steps = 3
[phase2]
steps = 4
classes = 4
samples = 2
[evaluation]
held_out = 0.05
every = 0
train_images = 0
END
cat >ranges.toml <<END
[tune]
trials = 3
[tune.ranges]
phase2.learning_rate = { log_uniform = [1e-4, 1e-2] }
group_loss.steps = { uniform = [1, 3] }
phase2.samples = { choice = [2, 3] }
[tune.inference]
slope = { uniform = [0, 1] }
max_share = { uniform = [0, 1] }
beta = { log_uniform = [1e-4, 1e-1] }
flip = { choice = [true, false] }
k1 = { choice = [4, 6] }
k2 = { choice = [2, 3] }
lambda = { uniform = [0.3, 1] }
END
tiny=("$tune" --config tiny.toml --ranges ranges.toml --threads 1)

expect 0 "example: gle-tune" "$tune" --help
expect 2 "--ranges is required" "$tune" --config tiny.toml
expect 2 "which search" "${tiny[@]}" --resume
expect 2 "say one of them" "${tiny[@]}" --resume --force --out no
expect 2 "has no table [tune]" "$tune" --config tiny.toml --ranges tiny.toml --out no
expect 2 "the config cannot be read" "$tune" --config tiny.toml --ranges nosuch.toml --out no
refuse() {
  printf '[tune.ranges]\n%s\n' "$2" >wrong.toml
  expect 2 "wrong.toml:2: $1" "$tune" --config tiny.toml --ranges wrong.toml --out no
}
refuse "there is no key 'phase2.rate'" "phase2.rate = { uniform = [0, 1] }"
refuse "phase2.learning_rate: the range is empty" "phase2.learning_rate = { uniform = [1, 0] }"
refuse "phase2.samples is 2.5; expected a whole number" "phase2.samples = { uniform = [2.5, 4] }"
refuse "phase2.loss: uniform is for numbers" "phase2.loss = { uniform = [0, 1] }"
expect 2 "evaluation.on: is \"none\"" "${tiny[@]}" --set evaluation.on=none --out none
expect 3 "No such file" "${tiny[@]}" --data nosuch --out nodata
expect 6 "making the folder failed" "${tiny[@]}" --out /proc/gle
[ ! -e no ]

expect 0 "best       trial" "${tiny[@]}" --out whole
cp out table
[ "$(grep -c ' done ' table)" -eq 3 ]
grep -qF "phase2.learning_rate" table
for file in search.toml results.json best.toml report.html trial-000/metrics.jsonl trial-002/config.toml; do
  [ -s "whole/$file" ] || { echo "FAILED: there is no whole/$file" >&2; exit 1; }
done
grep -qF "Recall@1 against phase2.learning_rate" whole/report.html
[ "$(find whole -name best.gle | wc -l)" -eq 1 ]
expect 2 "there is a search already" "${tiny[@]}" --out whole
# What cannot be searched leaves the one that is there as it is.
kept() {
  expect "$@" --out whole --force
  [ -s whole/results.json ] && [ -s whole/trial-002/metrics.jsonl ] && [ "$(find whole -name best.gle | wc -l)" -eq 1 ]
  expect "$@" --out no
  [ ! -e no ]
}
sed '/^\[tune.ranges\]/,/^\[tune.inference\]/ { /^\[tune.inference\]/!d }' ranges.toml >no-ranges.toml
kept 2 "tune.ranges: is empty" "$tune" --config tiny.toml --ranges no-ranges.toml
kept 3 "No such file" "${tiny[@]}" --data nosuch
kept 6 "nosuch.pth" "${tiny[@]}" --weights nosuch.pth
kept 3 "trial 0: classes x samples sampler: batches of 1000 classes" "${tiny[@]}" --set phase2.classes=1000
sed '/^\[tune.inference\]/,$d' ranges.toml >no-inference.toml
kept 2 "tune.inference: is empty" "$tune" --inference "$(dirname "$(dirname "$(find whole -name best.gle)")")" \
  --ranges no-inference.toml
expect 0 "best" "$tools/gle-train" --config whole/best.toml --seed 2 --out best --threads 1

# Killed in the first trial, asked to stop in a later one, gone on with: the same to the byte.
"${tiny[@]}" --out parts --quiet >parts.out 2>&1 &
pid=$!
until ls parts/trial-000/checkpoints/epoch=* >/dev/null 2>&1; do sleep 0.02; done
kill -KILL $pid
wait $pid || true
[ ! -e parts/results.json ]
"${tiny[@]}" --out parts --resume --quiet >parts.out 2>&1 &
pid=$!
until ls parts/trial-001/checkpoints/epoch=* >/dev/null 2>&1; do sleep 0.02; done
expect 6 "is in use by process $pid" "${tiny[@]}" --out parts --resume
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" -eq 75 ] || { echo "FAILED: SIGINT ended in $code" >&2; cat parts.out >&2; exit 1; }
expect 2 "group_loss.weight is 2.0 here and 1.0 in the search" "${tiny[@]}" --out parts --resume --set group_loss.weight=2
sed 's/\[1, 3\]/[1, 4]/' ranges.toml >others.toml
expect 2 "the table [tune] is another" "$tune" --config tiny.toml --ranges others.toml --out parts --resume
expect 0 "best       trial" "$tune" --out parts --resume --threads "$threads"
cmp parts/results.json whole/results.json
for trial in trial-000 trial-001 trial-002; do
  cmp "parts/$trial/metrics.jsonl" "whole/$trial/metrics.jsonl"
done

# More trials of the same search.
expect 0 "best       trial" "$tune" --out parts --resume --trials 4 --json four.json --threads 1
[ "$(grep -c '"trial":' four.json)" -eq 4 ]
head -c 300 parts/results.json >cut.json && cp cut.json parts/results.json
expect 3 "results.json: is damaged" "$tune" --out parts --resume
expect 0 "best       trial" "${tiny[@]}" --out parts --force --trials 1 --no-report
[ ! -e parts/trial-001 ] && [ ! -e parts/report.html ]

# The inference of a trained run.
run=$(dirname "$(dirname "$(find whole -name best.gle)")")
infer=("$tune" --inference "$run" --ranges ranges.toml --threads 1)
expect 0 "--strategies" "${infer[@]}" --out inference
grep -qF "published" out
[ "$(grep -c ' done ' out)" -eq 3 ]
grep -qF "Recall@1 against slope" inference/report.html
eval "$(sed -n "s|.*: gle-eval|expect 0 queries $tools/gle-eval|p" out) --no-nmi"
expect 0 "\"metric\"" "${infer[@]}" --out inference --resume --json -
cp inference/results.json before.json
expect 0 "" "${infer[@]}" --out again --trials 1
expect 0 "" "${infer[@]}" --out again --trials 3 --resume
cmp again/results.json before.json
expect 2 "the network is another" "$tune" --inference best --ranges ranges.toml --out inference --resume
expect 4 "" "$tune" --inference tiny.toml --ranges ranges.toml --out no
expect 0 "best" "$tools/gle-train" --config tiny.toml --set evaluation.on=test --out tested --threads 1
expect 2 "held no classes out" "$tune" --inference tested --ranges ranges.toml --out no
expect 0 "--strategies" "$tune" --inference tested --ranges ranges.toml --out on-test --on-test --trials 1 --threads 1
# The gle-eval that it tells of reads the data as the run did.
mkdir drawings set
tar -xzf "$data/omniglot.tar.gz" -C drawings
for class in $(ls drawings/test | head -n 12); do
  mkdir "set/$class"
  cp $(ls "drawings/test/$class"/*.png | head -n 6) "set/$class"
done
expect 0 "best" "$tools/gle-train" --config tiny.toml --data set --set data.dataset=folders --set data.train_classes=0:8 \
  --set data.exif=true --set evaluation.held_out=0.3 --out folders --threads 1
expect 0 " set --dataset folders --train-classes 0:8 --exif --strategies " "$tune" --inference folders --trials 1 \
  --ranges ranges.toml --out of-folders --threads 1
eval "$(sed -n "s|.*: gle-eval|expect 0 queries $tools/gle-eval|p" out) --no-nmi"
grep -qF "24 queries, 24 in the gallery" out
echo "gle-tune: all as expected"
