"""Compares an exported ONNX model in onnxruntime with `gle-model run` on the same random images.

    python tests/oracle/onnx_check.py GLE_MODEL NETWORK WEIGHTS [HxW] [options for both, as --slope 0.3 --beta 0.25]

Made with onnx 1.23.2, onnxruntime 1.31.1.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

model, network, weights = sys.argv[1:4]
rest = sys.argv[4:]
h, w = map(int, rest.pop(0).split("x")) if rest and rest[0][0].isdigit() else (224, 224)
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    images = numpy.random.default_rng(0).standard_normal((2, h, w, 3)).astype("f4")
    numpy.save(folder / "images.npy", images)
    common = ["--network", network, "--weights", weights, *rest]
    subprocess.run([model, "export", folder / "m.onnx", *common], check=True)
    subprocess.run([model, "run", folder / "images.npy", folder / "out.npy", *common], check=True)
    onnx.checker.check_model(str(folder / "m.onnx"))
    session = onnxruntime.InferenceSession(str(folder / "m.onnx"))
    theirs = session.run(["embedding"], {"images": numpy.ascontiguousarray(images.transpose(0, 3, 1, 2))})[0]
    ours = numpy.load(folder / "out.npy")
error = numpy.linalg.norm(ours - theirs) / numpy.linalg.norm(theirs)
print("%s %dx%d: relative difference %.2g" % (network, h, w, error))
sys.exit(0 if error < 1e-4 else 1)
