#!/usr/bin/env bash
# Installs the build into an empty folder, then configures, builds and runs a program of somebody else against it.
#   installed_package_test.sh CMAKE BUILD_DIR CONSUMER_DIR COMPILER
set -euo pipefail
cmake=$1 build=$2 consumer=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
"$cmake" -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$work/build" >/dev/null
"$work/build/consumer"
"$work/prefix/bin/gle-doctor" --version
