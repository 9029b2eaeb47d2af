"""Makes data/omniglot.tar.gz from Omniglot's images_background_small1.zip and images_background_small2.zip:
    python tests/oracle/make_omniglot.py FOLDER_OF_THE_ZIPS
Members are train/Alphabet.characterNN/drawing.png or test/..., 1-bit PNG, 105 x 105, sorted; the bytes do not depend on
when or where it is run, but on the version of zlib."""
import gzip
import io
import os
import sys
import tarfile
import zipfile

from PIL import Image

TRAIN = ["Balinese", "Early_Aramaic", "Greek", "Korean", "Latin"]
TEST = ["Japanese_(katakana)", "Sanskrit", "Tagalog"]
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    drawings = {}
    for part in ("small1", "small2"):
        with zipfile.ZipFile(os.path.join(sys.argv[1], f"images_background_{part}.zip")) as archive:
            for name in archive.namelist():
                if not name.endswith(".png") or "__MACOSX" in name:
                    continue
                _, alphabet, character, file = name.split("/")
                split = "train" if alphabet in TRAIN else "test"
                assert split == "train" or alphabet in TEST, alphabet
                image = Image.open(io.BytesIO(archive.read(name))).convert("1")
                assert image.size == (105, 105), name
                out = io.BytesIO()
                image.save(out, format="PNG", optimize=True)
                member = f"{split}/{alphabet}.{character}/{file}"
                pixels = image.tobytes()
                assert drawings.setdefault(member, (out.getvalue(), pixels))[1] == pixels, member
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for name in sorted(drawings):
            member = tarfile.TarInfo(name)
            member.size = len(drawings[name][0])
            out.addfile(member, io.BytesIO(drawings[name][0]))
    packed = gzip.compress(tar.getvalue(), 9, mtime=0)
    with open(os.path.join(HERE, "..", "..", "data", "omniglot.tar.gz"), "wb") as out:
        out.write(packed)
    print(len(drawings), "drawings,", len(packed), "bytes")


main()
