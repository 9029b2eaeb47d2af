#!/usr/bin/env bash
# A build without oneDNN needs nothing but the C and C++ runtime.
#   minimal_libraries_test.sh SHARED_OBJECT
set -euo pipefail
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ -n "$needed" ] || { echo "readelf found no needed libraries in $1"; exit 1; }
for library in $needed; do
  case $library in
    libc.so.* | libm.so.* | libstdc++.so.* | libgcc_s.so.* | ld-linux-x86-64.so.*) ;;
    *) echo "$1 needs $library"; exit 1 ;;
  esac
done
echo "needs only:" $needed
