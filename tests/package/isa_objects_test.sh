#!/usr/bin/env bash
# Object files compiled for one instruction set may define nothing that another could be linked to: every symbol that
# the linker can see is in the instruction set's own namespace.
#   isa_objects_test.sh ISA OBJECT...
set -euo pipefail
isa=$1
shift
[ $# -gt 0 ] || { echo "no object files given"; exit 1; }
# Names that sanitizers, exceptions and unwinding add are the same whatever the flags.
foreign=$(nm -C --defined-only --extern-only "$@" | grep -E '^[0-9a-f]+ [A-Za-z] ' | cut -d' ' -f3- |
  grep -vE "gle::cpu::${isa}::|^DW\.ref\.|^__odr_asan|^__clang_call_terminate|^typeinfo (name )?for " | sort -u || true)
if [ -n "$foreign" ]; then
  echo "defined outside gle::cpu::$isa:"
  echo "$foreign"
  exit 1
fi
echo "$# object files define only gle::cpu::$isa"
