#!/usr/bin/env bash
# Trains and evaluates the runs of docs/results.md: one JSON of figures each, from which docs/results/page.py makes the page.
#   tools/runs.sh [--seeds 1,2] [--threads N] [--out DIR] [--plain] [--ensembles] NAME...
#     NAME      of a config in tools/configs/runs, as market-group-loss, or of a line in variants.txt there; every seed is a
#               run of its own
#     --out     folder of the runs (runs); a run that was interrupted goes on, one that is complete is not repeated, and one
#               of other settings is refused
#     --plain   evaluate without GL++'s strategies, which take some minutes
#     --ensembles   then evaluate the first two seeds of each run together, the first three, and so on
# Other instructions round differently: runs with GLE_ISA=avx2 in the environment have that in their names, and figures are
# named by the instructions that the run was made with, if these are not AVX-512.
# Needs the data sets, MARKET=Market-1501-v15.09.15 and CUB=CUB_200_2011, for CUB the WEIGHTS of tools/get-weights.sh, and
# the programs (build/release/tools, or GLE_BIN).
set -euo pipefail
seeds=1 threads=0 out=runs ensembles= plain=
while [ $# -gt 0 ]; do
  case "$1" in
    --seeds) seeds=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --plain) plain=yes; shift ;;
    --ensembles) ensembles=yes; shift ;;
    --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "runs.sh: unknown option $1; try --help" >&2; exit 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || { echo "runs.sh: which runs? try --help" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${GLE_BIN:-$root/build/release/tools}
results=$root/docs/results

configs=$root/tools/configs/runs
isa=${GLE_ISA:+-$GLE_ISA}

data_of() {
  case $1 in
    market-*) echo "${MARKET:?folder of Market-1501}" ;;
    cub-*) echo "${CUB:?folder of CUB-200-2011}" ;;
    *) echo "runs.sh: $1 is of no data set that is known here: market-..., cub-..." >&2; exit 2 ;;
  esac
}

# Of models to a JSON file, if what is asked for is not there: evaluate DATA FILE MODEL...
evaluate() {
  local model current=yes
  for model in "${@:3}"; do
    [ "$2" -nt "$model/checkpoints/last.gle" ] || current=
  done
  if [ -n "$current" ] && { [ -n "$plain" ] || grep -q '"M+B"' "$2"; }; then
    return
  fi
  local strategies=(--strategies all)
  [ -z "$plain" ] || strategies=()
  "$bin/gle-eval" "${@:3}" "$1" "${strategies[@]}" --bootstrap 200 --threads "$threads" --no-progress --json "$2"
}

# An evaluation without the paths of the machine it was made on.
figures() { sed '/^  "source": {$/,/^  },$/d' "$1"; }

# The lines of a run's log that are of a kind, as members of a list: logged KIND FOLDER
logged() {
  { grep "\"kind\":\"$1\"" "$2/metrics.jsonl" || true; } | paste -sd,
}

# The end of the name of figures, by what a run was made with (at last, if it was resumed): the CPU's instructions, or a GPU.
made_with() {
  case $(grep '"backend"' "$1/env.json") in
    *'"cpu, avx512,'*) ;;
    *'"cpu, avx2,'*) echo -avx2 ;;
    *'"cpu, baseline,'*) echo -baseline ;;
    *'"cuda'*) echo -gpu ;;
    *) echo "runs.sh: $1/env.json does not say with which instructions the run was made" >&2; exit 1 ;;
  esac
}

# What a run is: config, what it sets beside it, and the run whose weights it begins with. A variant is all that its base is,
# and then what its own line says.
describe() {
  local variant setting
  config=$configs/$1.toml
  [ ! -s "$config" ] || return 0
  read -ra variant <<<"$(grep "^$1 " "$configs/variants.txt" || true)"
  [ ${#variant[@]} -gt 2 ] || { echo "runs.sh: $configs has no $1.toml, nor a line of it in variants.txt" >&2; exit 2; }
  describe "${variant[1]}"
  for setting in "${variant[@]:2}"; do
    case $setting in
      from=scratch) from= ;;
      from=*) from=${setting#from=} ;;
      *) settings+=(--set "$setting") ;;
    esac
  done
}

run() {
  local name=$1 seed=$2 folder=$out/$1$isa-$2 config settings=() from= weights=() data file
  case $name in cub-*) from=imagenet ;; esac
  describe "$name"
  data=$(data_of "$name")
  case $from in
    "") ;;
    imagenet) weights=(--weights "${WEIGHTS:?of Inception-v3, by tools/get-weights.sh}") ;;
    *)
      run "$from" "$seed"
      weights=(--weights "$out/$from$isa-$seed/checkpoints/last.gle")
      ;;
  esac
  # Of a complete run it looks whether it was made with these settings.
  "$bin/gle-train" --config "$config" "${settings[@]}" --data "$data" "${weights[@]}" --seed "$seed" \
    --threads "$threads" --out "$folder" --resume auto --no-progress
  evaluate "$data" "$folder/eval.json" "$folder"
  file=$results/$name$(made_with "$folder")-$seed.json
  {
    printf '{"run": "%s", "seed": %s,\n' "$name" "$seed"
    sed -nE 's/^ *("(revision|backend|cpu)": .*)/\1/p' "$folder/env.json"
    printf '"time": '
    cat "$folder/time.json"
    printf ',\n"training": [\n'
    logged training "$folder"
    printf '],\n"evaluations": [\n'
    logged evaluation "$folder"
    printf '],\n"evaluation": '
    figures "$folder/eval.json"
    printf '}\n'
  } >"$file.new"
  mv "$file.new" "$file"
}

# The runs of the first COUNT seeds as one model.
ensemble() {
  local name=$1 count=$2 models=() model members seed file
  members=$(cut -d, -f "1-$count" <<<"$seeds")
  for seed in ${members//,/ }; do
    models+=("$out/$name$isa-$seed")
  done
  for model in "${models[@]}"; do
    [ "$(made_with "$model")" = "$(made_with "${models[0]}")" ] ||
      { echo "runs.sh: $model was not made with the instructions that ${models[0]} was made with; an ensemble needs both alike" >&2; exit 2; }
  done
  file=$name$(made_with "${models[0]}")-${members//,/-}-ensemble.json
  evaluate "$(data_of "$name")" "$out/$file" "${models[@]}"
  {
    printf '{"run": "%s", "seeds": [%s],\n"evaluation": ' "$name" "$members"
    figures "$out/$file"
    printf '}\n'
  } >"$results/$file.new"
  mv "$results/$file.new" "$results/$file"
}

mkdir -p "$results"
for name in "$@"; do
  for seed in ${seeds//,/ }; do
    run "$name" "$seed"
  done
  if [ -n "$ensembles" ]; then
    for ((count = 2; count <= $(tr , '\n' <<<"$seeds" | wc -l); ++count)); do
      ensemble "$name" "$count"
    done
  fi
done
