#!/usr/bin/env bash
# Runs what README.md and docs/ tell their readers to run, page after page, in a folder with the repository's data/ and
# tools/ and the built programs in PATH. So that it takes a minute, the drawings are six of each character instead of 20,
# and training is cut to two steps a phase by the environment.
#   ```sh           is run, all blocks of a page in one shell that stops at the first failure
#   ```sh check     cannot be run here (hours, downloads, GPUs): its scripts, options and keys have to exist
#   ```LANG FILE    is written to FILE first
# Programs in `back quotes` are looked at like the blocks that cannot be run, and `section.key` has to be a key.
#   docs_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$build/tools:$PATH
export PATH GLE_PHASE1_STEPS=2 GLE_PHASE2_STEPS=2 GLE_RUN_LOG_EVERY=1 GLE_EVALUATION_EVERY=0
failed() { echo "FAILED: $*" >&2; exit 1; }

ln -s "$source/tools" .
mkdir build data drawings
tar -xzf "$source/data/omniglot.tar.gz" -C drawings --wildcards '*_0[1-6].png'
tar -czf data/omniglot.tar.gz -C drawings train test
for name in demo release minimal; do ln -s "$build" "build/$name"; done
# What the pages take for granted: pictures of the reader's.
mkdir images
tar -xzf data/omniglot.tar.gz -C images --strip-components=1 --wildcards 'test/Sanskrit.character0*'
cp images/Sanskrit.character01/"$(ls images/Sanskrit.character01 | head -1)" picture.png
cp tools/configs/demo.toml my.toml
gle-train --config tools/configs/demo.toml --out runs/demo-group-loss --no-progress >log 2>&1 ||
  { cat log; failed "tools/configs/demo.toml"; }

gle-train --print-config-reference | cmp - "$source/docs/configuration.md" ||
  failed "docs/configuration.md is not what gle-train --print-config-reference writes"
if command -v python3 >/dev/null; then
  mkdir results
  cp -r "$source/docs" "$source/tools" results
  python3 results/docs/results/page.py
  diff -r "$source/docs" results/docs || failed "docs/results.md is not what docs/results/page.py makes of the figures beside it"
fi
keys=$(gle-train --print-config | awk '/^\[/ { section = substr($1, 2, length($1) - 2) } / = / && !/^#/ { print section "." $1 }')
sections=$(cut -d. -f1 <<<"$keys" | sort -u | paste -sd'|')

# check_runs PAGE WORD...: options of runs.sh that there are, and runs that have a config or a line in variants.txt.
check_runs() {
  local page=$1 word runs=$source/tools/configs/runs
  for word in "${@:2}"; do
    case $word in
      --*) [[ $("$source/tools/runs.sh" --help) = *"[$word"* ]] || failed "$page: tools/runs.sh has no $word" ;;
      market-* | cub-*)
        [ -f "$runs/$word.toml" ] || grep -q "^$word " "$runs/variants.txt" || failed "$page: there is no run $word"
        ;;
    esac
  done
}

# check_command PAGE COMMAND...: a program of ours with options and keys that there are, or a script.
check_command() {
  local page=$1 command=$2 help flag subcommand=()
  shift 2
  case $command in
    gle-bench*) return 0 ;;  # built apart
    gle-*) command -v "$command" >/dev/null || failed "$page: there is no program $command" ;;
    tools/*.sh | tests/*.sh)
      [ -x "$source/$command" ] || failed "$page: there is no $command"
      [ "$command" != tools/runs.sh ] || check_runs "$page" "$@"
      return 0
      ;;
    *) return 0 ;;
  esac
  help=$("$command" --help)
  if grep -q '^Subcommands:' <<<"$help" && [ $# -gt 0 ] && [[ "$1" != -* ]]; then
    subcommand=("$1")
    help=$("$command" "$1" --help) || failed "$page: $command has no $1"
  fi
  while [ $# -gt 0 ]; do
    flag=${1%%=*}
    if [[ "$flag" == --[a-z]* ]] && ! grep -qE -- "^  $flag( |\$)" <<<"$help"; then
      failed "$page: $command ${subcommand[*]} has no $flag"
    fi
    if [ "$flag" = --set ] && [ -n "${2:-}" ] && ! grep -qxF "${2%%=*}" <<<"$keys"; then
      failed "$page: there is no key ${2%%=*}"
    fi
    shift
  done
}

# check_lines PAGE: each line of stdin as a command, without comments, variables in front, and what comes after a pipe.
check_lines() {
  local line words count=0
  while IFS= read -r line; do
    line=$(sed 's/ *#.*//; s/[|<>;].*//; s/^\(.*&& \)*//; s/^\([A-Z_]*=[^ ]* \)*//; s/[][]//g' <<<"$line")
    read -ra words <<<"$line"
    [ ${#words[@]} -eq 0 ] || { check_command "$1" "${words[@]}"; count=$((count + 1)); }
  done
  checked=$((checked + count))
}

# blocks PAGE INFO: the code in fences of that kind; a line that ends in a backslash goes on in the next.
blocks() { awk -v info="$2" '/^```/ { on = !on && $0 == "```" info; next } on' "$1" | sed ':a; /\\$/ { N; s/\\\n//; ta }'; }

while IFS= read -r run; do
  blocks "$source/docs/results.md" "sh check" | grep -qE "tools/runs\.sh .*\b$run( |\$)" ||
    failed "docs/results.md: no command makes the figures of $run"
done < <(sed -n 's/^{"run": "\([^"]*\)".*/\1/p' "$source"/docs/results/*.json | sort -u)

pages=("$source"/docs/training.md "$source"/README.md "$source"/docs/tutorial.md)
for page in "$source"/docs/*.md; do
  [[ " ${pages[*]} " = *" $page "* ]] || pages+=("$page")
done
run=0 checked=0
for page in "${pages[@]}"; do
  name=${page#"$source/"}
  while read -r _ file; do
    blocks "$page" "$(grep -oE "^\`\`\`[a-z]+ $file\$" "$page" | cut -c4-)" >"$file"
  done < <(grep -oE '^```[a-z]+ [a-z_]+\.[a-z]+$' "$page" || true)
  if [ "$name" != docs/configuration.md ]; then
    while IFS= read -r key; do
      grep -qxF "${key%% *}" <<<"$keys" || failed "$name: there is no key ${key%% *}"
    done < <(grep -oE "\`($sections)\.[a-z0-9_]+( = [^\`]*)?\`" "$page" | tr -d '`' | grep -vE '\.(h|cpp|md|gle)$' || true)
  fi
  check_lines "$name" < <(blocks "$page" "sh check")
  check_lines "$name" < <(tr '\n' ' ' <"$page" | grep -oE '`gle-[a-z]+ [^`]*`' | tr -d '`' || true)
  blocks "$page" sh >commands.sh
  check_lines "$name" <commands.sh
  if [ -s commands.sh ]; then
    start=$SECONDS
    bash -euo pipefail -x commands.sh >log 2>&1 </dev/null || { cat log; failed "$name: its commands do not work as written"; }
    run=$((run + $(grep -c . commands.sh)))
    echo "$name: $(grep -c . commands.sh) lines run, $((SECONDS - start)) s"
  fi
done
[ "$run" -ge 20 ] && [ "$checked" -ge 40 ]
echo "$run lines run, $checked commands checked"
