#!/usr/bin/env bash
# Three ranks on three hosts train together; one is killed ten times, at moments that a seed chooses. Each time the
# others end within 30 s and name it and its host, and in the end the run has the bytes of one that nobody disturbed.
# Sometimes the launcher takes no notice, and once a host is cut off instead. Needs the right to make network namespaces.
#   dead_rank_test.sh FOLDER_OF_PROGRAMS DATA_FOLDER
set -euo pipefail
here=$(realpath "$(dirname "$0")") tools=$(realpath "$1") data=$(realpath "$2")
if [ "${3:-}" != inside ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  code=0
  "$here/hosts.sh" 3 "$here/dead_rank_test.sh" "$tools" "$data" inside || code=$?
  exit $code
fi

. ./hosts
. "$here/../tools/tiny_config.sh"
failed() { echo "FAILED: $*" >&2; cat log >&2; exit 1; }
mkdir drawings
tar -xzf "$data/omniglot.tar.gz" -C drawings --wildcards '*_0[1-4].png'
tiny_config "$PWD/drawings" >tiny.toml
cat >>tiny.toml <<END
[run]
checkpoint_steps = 2
keep_last = 2
log_every = 1
[phase1]
steps = 20
batch = 24
[phase2]
steps = 110
classes = 6
samples = 4
[evaluation]
on = "held_out"
held_out = 0.2
every = 0
[distributed]
timeout = 3
sync_batch_norm = false
END
train=("${on_hosts[@]}")
command=("$tools/gle-train" --config tiny.toml --threads 1 --no-progress --resume auto)

alive() { pgrep -x gle-train >/dev/null; }
pid_of_rank() {
  local pid
  for pid in $(pgrep -x gle-train); do
    ! tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" || echo "$pid"
  done
}
steps() { wc -l <"run/metrics.jsonl"; }

"${train[@]}" "${command[@]}" --out whole >log 2>&1 || failed "the undisturbed run"

# disturb STEPS MS RANK LAUNCHER: starts or resumes the run, and ends the rank so long after its first step
disturb() {
  local more=$1 ms=$2 rank=$3 launcher=$4 before pid start options=()
  before=$(steps 2>/dev/null || echo 0)
  [ "$launcher" = sees ] || options=(--enable-recovery)
  "${train[@]}" "${options[@]}" "${command[@]}" --out run >log 2>&1 &
  local mpirun=$!
  until [ "$(steps 2>/dev/null || echo 0)" -gt $((before + more)) ]; do
    kill -0 $mpirun 2>/dev/null || failed "it ended before it was disturbed"
    sleep 0.005
  done
  sleep "0.$ms"
  start=$(date +%s%N)
  if [ "$launcher" = unreachable ]; then
    ip link set "to_host$((rank + 1))" down
  else
    pid=$(pid_of_rank "$rank")
    [ -n "$pid" ] || failed "there is no rank $rank: the run is too short for this machine"
    kill -KILL "$pid"
  fi
  while alive; do
    [ $(($(date +%s%N) - start)) -lt 30000000000 ] || failed "rank $rank was ended 30 s ago, and others go on"
    sleep 0.05
  done
  echo "rank $rank ended at step $(steps), launcher $launcher: all gone after $((($(date +%s%N) - start) / 1000000)) ms"
  if [ "$launcher" = unreachable ]; then
    kill -KILL $mpirun  # which waits for the daemon of the host that is not there
    ip link set "to_host$((rank + 1))" up
    until [[ "$(nsenter --net="/run/netns/host$((rank + 1))" bash -c '</dev/tcp/10.9.0.254/9' 2>&1)" = *refused* ]]; do
      sleep 0.1
    done
  fi
  local code=0
  { wait $mpirun; } 2>/dev/null || code=$?
  [ "$launcher" != sees ] || [ "$code" -ne 0 ] || failed "mpirun calls it a success"
  grep -q "gle-train: rank $rank on host$((rank + 1)) has been silent" log || failed "nobody names rank $rank"
}

RANDOM=13
launchers=(sees sees blind sees sees unreachable sees sees blind sees)
for i in "${!launchers[@]}"; do
  disturb $((RANDOM % 5)) "0$((RANDOM % 20 + 10))" $((RANDOM % 3)) "${launchers[i]}"
done
"${train[@]}" "${command[@]}" --out run >log 2>&1 || failed "the last resumption"
cmp whole/checkpoints/last.gle run/checkpoints/last.gle || failed "the resumed run ends otherwise"
cmp whole/metrics.jsonl run/metrics.jsonl || failed "the resumed run has another log"
echo "ended ten times, and the same bytes in the end"
