#!/usr/bin/env bash
# Installs what a build needs and this machine lacks, by apt on Debian and Ubuntu.
#   tools/install-packages.sh build|test
set -euo pipefail

packages=(g++ cmake ninja-build ccache libjpeg-dev libspng-dev libstb-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev
  pkg-config)
if [ "${1:-build}" = test ]; then
  # OpenCL: what the CMake files of libdnnl-dev ask for.
  packages+=(libgtest-dev libbenchmark-dev libdnnl-dev ocl-icd-opencl-dev libopenmpi-dev openmpi-bin binutils)
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "install-packages.sh: no apt-get here; install these yourself: ${missing[*]}" >&2
  exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-packages.sh: root or sudo is needed to install: ${missing[*]}" >&2
    exit 1
  fi
  run=(sudo)
fi
echo "installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
"${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
