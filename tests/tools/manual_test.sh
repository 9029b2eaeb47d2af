#!/usr/bin/env bash
# Every program and subcommand: --help within 80 columns and with an example of options that there are; a manual page
# without complaints; completion that offers what --help lists, tried in bash, and in zsh and fish where they are.
#   manual_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail
tools=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed() { echo "FAILED: $*" >&2; exit 1; }

# options COMMAND...: those that its --help lists.
options() { "$tools/$1" "${@:2}" --help | grep -oE '^  --[a-z0-9-]+' | tr -d ' ' | sort; }
subcommands() { "$tools/$1" --help | awk '/^Subcommands:/ { on = 1; next } /^[a-z]/ { on = 0 } on && /^  [a-z]/ { print $1 }'; }

# in_bash WORD...: what bash offers for the last word.
in_bash() {
  # shellcheck disable=SC2016
  bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_${1//-/_}"; printf "%s\n" "${COMPREPLY[@]}"' \
    "$1.bash" "$@"
}
# offers TEXT COMMAND...: the command prints these words, in any order.
offers() {
  local expected found
  expected=$(tr ' ' '\n' <<<"$1" | sort)
  found=$("${@:2}" | sort)
  [ "$found" = "$expected" ] || failed "${*:2}: offers" $found "instead of" $expected
}

help() {  # COMMAND...
  local text example
  text=$("$tools/$1" "${@:2}" --help)
  [ -z "$(grep -E '.{81}' <<<"$text")" ] || failed "$* --help is wider than 80 columns"
  example=$(sed -n 's/^example: //p' <<<"$text")
  [[ "$example" = *"$*"* ]] || failed "$* --help: the example is '$example'"
  local of=("$@") second
  second=$(sed -E "s/.*$1 ([a-z]+) .*/\1/" <<<"$example")
  if [ $# -eq 1 ] && subcommands "$1" | grep -qx -- "$second"; then of+=("$second"); fi
  for flag in $(grep -oE -- '--[a-z0-9-]+' <<<"$example"); do
    options "${of[@]}" | grep -qx -- "$flag" || failed "$* --help: the example has $flag, which is not there"
  done
}

programs=0
for program in "$tools"/gle-*; do
  { [ -f "$program" ] && [ -x "$program" ]; } || continue
  name=$(basename "$program")
  programs=$((programs + 1))
  "$program" --version | grep -q "^$name [0-9]" || failed "$name --version"
  for shell in bash zsh fish; do
    "$program" --print-completion "$shell" >"$name.$shell"
  done
  "$program" --print-man >"$name.1"
  help "$name"
  offers "$(options "$name" | tr '\n' ' ' | sed 's/ $//')" in_bash "$name" --
  commands=$(subcommands "$name")
  for command in $commands; do
    help "$name" "$command"
    offers "$(options "$name" "$command" | tr '\n' ' ' | sed 's/ $//')" in_bash "$name" "$command" --
    grep -q "^\.SS ${name/-/\\\\-} $command " "$name.1" || failed "$name.1 has no section on $command"
  done
  [ -z "$commands" ] || offers "$(echo $commands)" in_bash "$name" ''

  for flag in $(options "$name"); do
    grep -qF -- "\\fB${flag//-/\\-}\\fR" "$name.1" || failed "$name.1 does not have $flag"
  done
  if command -v groff >/dev/null; then
    complaints=$(groff -man -ww -z -Tutf8 "$name.1" 2>&1)
    [ -z "$complaints" ] || failed "$name.1: $complaints"
  fi
  if command -v mandoc >/dev/null; then
    complaints=$(mandoc -T lint -W warning "$name.1" | grep -v 'missing date' || true)
    [ -z "$complaints" ] || failed "$name.1: $complaints"
  fi
  bash -n "$name.bash"
  ! command -v zsh >/dev/null || zsh -n "$name.zsh"
  ! command -v fish >/dev/null || fish --no-execute "$name.fish"
done
[ "$programs" -ge 8 ] || failed "only $programs programs in $tools"

offers "gallery" in_bash gle-embed --split g
offers "gallery" in_bash gle-embed --split = g
offers "paper official" in_bash gle-eval model data --values ''
offers "bn_inception" in_bash gle-model info bn
offers "phase1.steps=" in_bash gle-train --set phase1.ste
offers "" in_bash gle-search --k ''
mkdir 'my pictures' my
touch my.gle
offers "my my.gle my_pictures" eval "in_bash gle-search m | tr ' ' _"
offers "my.gle" in_bash gle-train --weights my.
if command -v fish >/dev/null; then
  in_fish() { fish -c "source $1.fish; complete -C '$2'" | cut -f1; }
  offers "paper official" in_fish gle-eval "gle-eval --values "
  offers "--strategies" in_fish gle-eval "gle-eval --strat"
  offers "import info init" in_fish gle-model "gle-model i"
  offers "--tolerance" in_fish gle-model "gle-model diff --tol"
fi
if command -v zsh >/dev/null; then
  # What the completion system would be told, argument by argument.
  in_zsh() { zsh -fc '_arguments() { print -rl -- "$@" }; CURRENT=$#; words=("$@"); source $0' "$1.zsh" "$@"; }
  in_zsh gle-embed x | grep -qxF -- '--split[which images\: test, query, gallery, train or all (test)]:NAME:(test query gallery train all)' ||
    failed "zsh: gle-embed --split"
  in_zsh gle-model diff x | grep -q -- '^--tolerance' || failed "zsh: gle-model diff --tolerance"
fi
echo "$programs programs: --help, manual pages and completions as expected"
