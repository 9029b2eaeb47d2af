"""Writes tests/fixtures/packed: one text, packed by zlib in every way that DEFLATE has."""
import gzip
import pathlib
import zlib

folder = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "packed"
text = b"".join(b"line %d: %d squared is %d\n" % (i, i, i * i) for i in range(400))
text += bytes((i * i * 7 + i // 13) % 251 for i in range(3000)) + b"a" * 5000
for name, level, strategy in (("stored", 0, zlib.Z_DEFAULT_STRATEGY), ("fixed", 9, zlib.Z_FIXED),
                              ("dynamic", 9, zlib.Z_DEFAULT_STRATEGY), ("literals", 6, zlib.Z_HUFFMAN_ONLY)):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    (folder / (name + ".deflate")).write_bytes(packer.compress(text) + packer.flush())
(folder / "text.zlib").write_bytes(zlib.compress(text, 6))
(folder / "text.gz").write_bytes(gzip.compress(text[:7000], mtime=0) + gzip.compress(text[7000:], mtime=0))
