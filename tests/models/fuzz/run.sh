#!/usr/bin/env bash
# Runs every parser's fuzz target from its corpus, which is the tests' own fixtures.
#   tests/models/fuzz/run.sh BUILD_DIR [libFuzzer options, default -max_total_time=30]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
[ $# -gt 0 ] || set -- -max_total_time=30
fixtures=$here/../fixtures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$fixtures" "$work" <<'PY'
import pathlib, sys, zipfile, zlib
fixtures, work = map(pathlib.Path, sys.argv[1:])
def seed(parser, name, data):
    (work / parser).mkdir(exist_ok=True)
    (work / parser / name.replace("/", "_")).write_bytes(data)
weights = fixtures / "weights"
for f in ("zip.pth", "script.pt", "arrays.npz", "checkpoint.pth.tar"):
    data = (weights / f).read_bytes()
    seed("zip", f, data)
    seed("weights", f, data)
    with zipfile.ZipFile(weights / f) as z:
        for n in z.namelist():
            if n.endswith(".pkl"):
                seed("pickle", f + n, z.read(n))
            if n.endswith(".npy"):
                seed("npy", n, z.read(n))
for f in ("malicious.zip", "lies.zip"):
    with zipfile.ZipFile(weights / f) as z:
        for n in z.namelist():
            seed("pickle" if f == "malicious.zip" else "weights", n, z.read(n))
seed("legacy_pth", "legacy", (weights / "legacy.pth").read_bytes())
seed("weights", "legacy", (weights / "legacy.pth").read_bytes())
seed("safetensors", "tensors", (weights / "tensors.safetensors").read_bytes())
seed("weights", "tensors", (weights / "tensors.safetensors").read_bytes())
seed("zip", "streamed", (fixtures / "streamed.zip").read_bytes())
seed("npy", "fortran", (fixtures / "fortran.npy").read_bytes())
for level in (0, 1, 9):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    seed("inflate", str(level), packer.compress(bytes(range(256)) * 2 + b"abc" * 50) + packer.flush())
PY
for parser in inflate legacy_pth npy pickle safetensors weights zip; do
  echo "== $parser"
  "$build/tests/models/fuzz/${parser}_fuzz" -rss_limit_mb=512 -timeout=5 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$work/" "$@" "$work/$parser" 2>"$work/log" || { tail -40 "$work/log"; exit 1; }
  grep -E "stat::number_of_executed_units|stat::average_exec" "$work/log"
done
