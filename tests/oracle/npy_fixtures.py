"""Writes tests/models/fixtures/{stored,deflated}.npz and fortran.npy with NumPy, for tests/models/npy_test.cpp."""
import pathlib
import zipfile

import numpy

folder = pathlib.Path(__file__).resolve().parent.parent / "models" / "fixtures"
arrays = {
    "f4": numpy.arange(6, dtype="f4").reshape(2, 3) / 4,
    "f8": numpy.linspace(-1, 1, 5),
    "i4": numpy.array([[-(2**31)], [2**31 - 1]], dtype="i4"),
    "i8": numpy.array([-(2**63), 7, 2**63 - 1]),
    "u1": numpy.array([0, 255], dtype="u1"),
    "b1": numpy.array([True, False, True]),
    "text": numpy.array(["zero", "one", "drei\u00df", ""]),
    "scalar": numpy.float64(0.125),
    "word": numpy.array("paper"),
    "empty": numpy.zeros((0, 4), dtype="f4"),
    "long": (numpy.arange(3000) * numpy.arange(3000) % 251).astype("f4"),
    "random": numpy.random.default_rng(0).integers(0, 2**62, 400),
    "zeros": numpy.zeros(20000, dtype="f4"),
    "versions": numpy.array("numpy " + numpy.__version__),
}
numpy.savez(folder / "stored.npz", **{k: v for k, v in arrays.items() if k != "zeros"})
numpy.savez_compressed(folder / "deflated.npz", **arrays)
numpy.save(folder / "fortran.npy", numpy.asfortranarray(numpy.arange(24, dtype="f4").reshape(2, 3, 4)))
with zipfile.ZipFile(folder / "streamed.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    with archive.open("big.bin", "w", force_zip64=True) as entry:  # a zip64 extra field, sizes behind the data
        entry.write(bytes(range(256)) * 40)
    archive.comment = b"a comment with PK\x05\x06 in it"
