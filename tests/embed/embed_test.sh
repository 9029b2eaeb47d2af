#!/usr/bin/env bash
# Installs the build into an empty folder and builds two programs of somebody else against it, one in C and one in C++,
# by find_package and by pkg-config, shared and static. All give the same bits, which are those of gle-embed.
#   embed_test.sh CMAKE BUILD_DIR SOURCE_DIR
set -euo pipefail
cmake=$1 build=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
"$cmake" -S "$source" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$work/build" >/dev/null
cd "$work"

# Pictures: bitmaps of 8 x 8 pixels of noise, 24 bits each.
bitmap() {
  printf 'BM\xf6\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x08\0\0\0\x08\0\0\0\x01\0\x18\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  awk -v seed="$1" 'BEGIN { srand(seed); for (i = 0; i < 192; ++i) printf "\\x%02x", int(rand() * 256) }' | xargs -0 printf
}
mkdir pictures
for i in 1 2 3; do bitmap "$i" >"pictures/$i.bmp"; done
pictures=(pictures/1.bmp pictures/2.bmp pictures/3.bmp)
prefix/bin/gle-model init densenet121 model.safetensors --seed 1
prefix/bin/gle-embed model.safetensors pictures --out index --batch 1 --quiet

build/embed_c model.safetensors index "${pictures[@]}" >shared.txt
build/embed_c_static model.safetensors index "${pictures[@]}" >static.txt
build/embed_cpp model.safetensors "${pictures[@]}" >cpp.txt
cmp shared.txt static.txt
cmp shared.txt cpp.txt
tail -c $((3 * 1024 * 4)) index/embeddings.npy | od -A n -v -t x4 -w4096 | sed 's/^ //' | cmp - static.txt
[ "$(wc -l <shared.txt)" -eq 3 ] && [ "$(head -1 shared.txt | wc -w)" -eq 1024 ]
[ "$(sort -u shared.txt | wc -l)" -eq 3 ]

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name gle.pc)")
  # shellcheck disable=SC2046
  cc -std=c99 "$source/embed.c" $(pkg-config --cflags --libs gle) \
    -Wl,-rpath,"$(dirname "$(find "$work/prefix" -name libgle.so)")" -o by_pkg_config
  ./by_pkg_config model.safetensors index "${pictures[@]}" | cmp shared.txt
fi

library=$(find prefix -name 'libgle.so.*.*')
strip -o stripped.so "$library"
strip -o stripped build/embed_c_static
echo "libgle.so: $(stat -c %s stripped.so) bytes stripped; the C program with all of it inside: $(stat -c %s stripped)"
needed=$(readelf -d build/embed_c_static | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
! grep -q libgle <<<"$needed" || { echo "embed_c_static still needs libgle.so"; exit 1; }
foreign=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^gle_' || true)
[ -z "$foreign" ] || { echo "seen from outside: $foreign"; exit 1; }
