"""Makes tests/data/fixtures/images.tar.gz and images.csv: pictures of every kind, from formulas, and hashes of the
pixels that Pillow decodes and resizes from them.
    python tests/oracle/make_image_fixtures.py
With --cub DIR also tests/data/fixtures/cub.csv: the same hashes for 200 pictures of CUB-200-2011 as they are in DIR."""
import argparse
import gzip
import io
import os
import struct
import tarfile
import zlib

import numpy as np
import PIL
from PIL import Image, ImageOps, features

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "fixtures")


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def formula(kind, w, h, channels):
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    c = np.arange(channels)[None, None, :]
    x, y = x[..., None], y[..., None]
    if kind == 0:  # smooth
        v = 127 + 60 * np.sin(x / 5 + c) + 60 * np.cos(y / 7 - c)
    elif kind == 1:  # edges and saturated colours
        v = 255 * (((x // 4 + y // 3 + c) % 2) > 0)
    else:  # noise
        v = (x * 7919 + y * 104729 + c * 1299709 + (x * y * 31) % 97 * 17) % 256
    return np.clip(v, 0, 255).astype(np.uint8)


def picture(kind, w, h, mode):
    channels = {"L": 1, "RGB": 3, "CMYK": 4, "LA": 2, "RGBA": 4}[mode]
    a = formula(kind, w, h, channels)
    return Image.fromarray(a[..., 0] if channels == 1 else a, mode) if mode not in ("CMYK", "LA") else Image.frombytes(
        mode, (w, h), a.tobytes())


def encoded(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(w, h, colour, depth, interlaced, samples, palette=None, transparency=None):
    """samples: [h, w, channels] of ints below 2**depth."""

    def rows(part):
        out = b""
        for i, row in enumerate(part):
            flat = row.reshape(-1)
            if depth == 16:
                line = flat.astype(">u2").tobytes()
            elif depth == 8:
                line = flat.astype(np.uint8).tobytes()
            else:
                bits = "".join(format(int(v), f"0{depth}b") for v in flat)
                bits += "0" * (-len(bits) % 8)
                line = bytes(int(bits[j:j + 8], 2) for j in range(0, len(bits), 8))
            step = max(1, depth * samples.shape[2] // 8)
            if i % 2:  # filter Sub on every other row
                line = b"\x01" + bytes((line[j] - (line[j - step] if j >= step else 0)) % 256 for j in range(len(line)))
            else:
                line = b"\x00" + line
            out += line
        return out

    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        parts = [samples[y0::dy, x0::dx] for y0, x0, dy, dx in passes]
        data = b"".join(rows(p) for p in parts if p.shape[0] and p.shape[1])
    else:
        data = rows(samples)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, int(interlaced)))
    if palette is not None:
        out += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparency is not None:
        out += chunk(b"tRNS", transparency)
    packed = zlib.compress(data)
    half = len(packed) // 2
    return out + chunk(b"IDAT", packed[:half]) + chunk(b"IDAT", packed[half:]) + chunk(b"IEND", b"")


def all_files():
    sizes = [(1, 1), (7, 5), (16, 16), (17, 33), (40, 23), (47, 48)]
    for kind in range(3):
        for w, h in sizes:
            for quality in (35, 90):
                for subsampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
                    for progressive in (False, True):
                        image = picture(kind, w, h, "RGB")
                        if subsampling == "4:1:1" and progressive:
                            continue
                        yield (f"rgb_{kind}_{w}x{h}_q{quality}_{subsampling.replace(':', '')}_p{int(progressive)}.jpg",
                               encoded(image, format="JPEG", quality=quality, subsampling=subsampling,
                                       progressive=progressive))
            yield f"restart_{kind}_{w}x{h}.jpeg", encoded(picture(kind, w, h, "RGB"), format="JPEG", quality=80,
                                                          restart_marker_blocks=1)
            yield f"rgb_space_{kind}_{w}x{h}.JPG", encoded(picture(kind, w, h, "RGB"), format="JPEG", quality=80,
                                                           keep_rgb=True, optimize=True)
            for progressive in (False, True):
                yield (f"grey_{kind}_{w}x{h}_p{int(progressive)}.jpg",
                       encoded(picture(kind, w, h, "L"), format="JPEG", quality=75, progressive=progressive))
                yield (f"cmyk_{kind}_{w}x{h}_p{int(progressive)}.jpg",
                       encoded(picture(kind, w, h, "CMYK"), format="JPEG", quality=85, progressive=progressive))
            for depth in (1, 2, 4, 8, 16):
                for interlaced in (False, True):
                    grey = (formula(kind, w, h, 1).astype(np.int64) * 257) >> (16 - depth)
                    yield f"grey{depth}_{kind}_{w}x{h}_i{int(interlaced)}.png", png(w, h, 0, depth, interlaced, grey)
        for w, h in sizes[1:4]:
            for depth in (8, 16):
                for interlaced in (False, True):
                    wide = formula(kind, w, h, 4).astype(np.int64) * (257 if depth == 16 else 1)
                    name = f"{depth}_{kind}_{w}x{h}_i{int(interlaced)}.png"
                    yield "rgb" + name, png(w, h, 2, depth, interlaced, wide[..., :3])
                    yield "rgba" + name, png(w, h, 6, depth, interlaced, wide)
                    yield "la" + name, png(w, h, 4, depth, interlaced, wide[..., :2])
            for depth in (1, 2, 4, 8):
                colours = formula(2, 2**depth, 1, 3)[0]
                index = formula(kind, w, h, 1).astype(np.int64) >> (8 - depth)
                yield f"palette{depth}_{kind}_{w}x{h}.png", png(w, h, 3, depth, False, index, colours)
                yield f"palette{depth}_{kind}_{w}x{h}_t.png", png(w, h, 3, depth, True, index, colours, b"\x00\x80")
            for mode in ("RGB", "L", "RGBA"):
                yield f"{mode.lower()}_{kind}_{w}x{h}.bmp", encoded(picture(kind, w, h, mode), format="BMP")
            yield f"p_{kind}_{w}x{h}.bmp", encoded(picture(kind, w, h, "RGB").quantize(16), format="BMP")
            yield f"1_{kind}_{w}x{h}.bmp", encoded(picture(kind, w, h, "L").convert("1"), format="BMP")
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        yield f"exif{orientation}.jpg", encoded(picture(0, 20, 13, "RGB"), format="JPEG", exif=exif)
        yield f"exif{orientation}.png", encoded(picture(0, 20, 13, "RGB"), format="PNG", exif=exif)
    yield "jpeg_named.png", encoded(picture(0, 20, 13, "RGB"), format="JPEG")
    yield "png_named.jpg", encoded(picture(0, 20, 13, "RGB"), format="PNG")


RESIZES = [(Image.BILINEAR, 31, 17), (Image.BILINEAR, 9, 64), (Image.BICUBIC, 31, 17), (Image.BICUBIC, 64, 6)]


def record(name, data):
    image = Image.open(io.BytesIO(data))
    pixels = image.convert("RGB")
    turned = ImageOps.exif_transpose(image).convert("RGB")
    row = [name, str(pixels.width), str(pixels.height), fnv(pixels.tobytes()), fnv(turned.tobytes())]
    row += [fnv(pixels.resize((w, h), f).tobytes()) for f, w, h in RESIZES]
    return ",".join(row)


def versions():
    return f"Pillow {PIL.__version__} with libjpeg-turbo {features.version('libjpeg_turbo')}"


def write(name, rows):
    with open(os.path.join(HERE, name), "w", newline="\n") as out:
        out.write("# made by tests/oracle/make_image_fixtures.py with " + versions() + "\n")
        out.write("name,width,height,pixels,turned,bilinear_31x17,bilinear_9x64,bicubic_31x17,bicubic_64x6\n")
        out.write("\n".join(rows) + "\n")
    print(name, len(rows), "rows")


def cub(root):
    names = [line.split()[1] for line in open(os.path.join(root, "images.txt"))]
    grey = [n for n in names if Image.open(os.path.join(root, "images", n)).mode != "RGB"]
    chosen = sorted(set(grey + names[::58]))
    write("cub.csv", [record(n, open(os.path.join(root, "images", n), "rb").read()) for n in chosen])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cub")
    options = parser.parse_args()
    if options.cub:
        return cub(options.cub)
    files = list(all_files())
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
    packed = gzip.compress(tar.getvalue(), 9, mtime=0)
    with open(os.path.join(HERE, "images.tar.gz"), "wb") as out:
        out.write(packed)
    print("images.tar.gz", len(packed), "bytes")
    write("images.csv", [record(name, data) for name, data in files])


main()
