"""Writes the seeds of tests/fuzz/corpus that come out of other fixtures: the weight files of tests/models/fixtures whole
and taken apart, a checkpoint, a folder of embeddings. Needs nothing but Python."""
import json
import pathlib
import struct
import zipfile
import zlib

tests = pathlib.Path(__file__).resolve().parent.parent
fixtures = tests / "models" / "fixtures"
weights = fixtures / "weights"


def seed(target, name, data):
    folder = tests / "fuzz" / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name.replace("/", "_").replace(" ", "_")).write_bytes(data)


def sized(*parts):
    """What tests/fuzz/archive.h and embedding_folder_fuzz.cpp take apart again."""
    return b"".join(struct.pack("<H", len(p)) + p for p in parts)


def members(path):
    with zipfile.ZipFile(path) as z:
        return {n.split("/", 1)[-1]: z.read(n) for n in z.namelist()}


for f in ("zip.pth", "script.pt", "arrays.npz", "checkpoint.pth.tar"):
    seed("zip", f, (weights / f).read_bytes())
    seed("weights", f, (weights / f).read_bytes())
seed("zip", "streamed.zip", (fixtures / "streamed.zip").read_bytes())
for target in ("weights", "legacy_pth"):
    seed(target, "legacy.pth", (weights / "legacy.pth").read_bytes())
for target in ("weights", "safetensors"):
    seed(target, "tensors.safetensors", (weights / "tensors.safetensors").read_bytes())
seed("npy", "fortran.npy", (fixtures / "fortran.npy").read_bytes())

for f in ("zip.pth", "checkpoint.pth.tar", "parameter.pth"):
    m = members(weights / f)
    seed("pth_zip", f, sized(m["data.pkl"], *(m.get("data/%d" % i, b"") for i in range(3)), m["byteorder"]))
    seed("pickle", f + ".pkl", m["data.pkl"])
script = members(weights / "script.pt")
seed("torchscript", "script", sized(script["data.pkl"], script["constants.pkl"],
                                    *(script.get("data/%d" % i, b"") for i in range(2)), script["byteorder"]))
seed("pickle", "script.pkl", script["data.pkl"])
arrays = members(weights / "arrays.npz")
seed("npz", "arrays", sized(arrays["conv.weight.npy"], arrays["double.npy"], arrays["steps.npy"]))
for n, data in arrays.items():
    seed("npy", n, data)
for n, data in members(weights / "malicious.zip").items():
    if n in ("call os.system", "stack_global builtins.eval", "newobj torch.load", "memo bomb", "build a tensor",
             "odd dictionary", "persistent module", "proto 0"):
        seed("pickle", n, data)
for n, data in members(weights / "lies.zip").items():
    seed("weights", "lie " + n, data)
for level in (0, 1, 9):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    seed("inflate", str(level), packer.compress(bytes(range(256)) * 2 + b"abc" * 50) + packer.flush())

described = {"version": 1, "network": "densenet_tiny", "classes": 4, "embedding": 0, "bnneck": False, "max_share": 0,
             "norm_momentum": 0.1, "norm_eps": 1e-5,
             "input": {"height": 8, "width": 8, "short_side": 0, "square": 9, "bgr": False, "scale": 1, "mean": [0, 0, 0],
                       "deviation": [1, 1, 1]}}
header = json.dumps({"__metadata__": {"gle": json.dumps(described)},
                     "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
model = struct.pack("<Q", len(header)) + header + bytes(8)
seed("model_file", "described.json", json.dumps(described).encode())
position = "".join("%s 0\n" % k for k in ("phase", "epoch", "step", "batches", "epoch_of_phase", "step_of_phase",
                                          "batch_of_epoch", "evaluation_due", "best", "best_step", "since_best",
                                          "skipped", "done", "optimiser_steps")).encode()
# Checksums are the target's affair.
sections = {"weights": model, "position": position, "config": b"[model]\n", "optimiser/m": bytes(8),
            "class_distances": bytes(16)}
directory = b"".join(struct.pack("<I", len(k)) + k.encode() + struct.pack("<QI", len(v), 0) for k, v in sections.items())
seed("checkpoint", "small.gle", b"GLECKPT\n" + struct.pack("<IIQII", 1, len(sections), len(directory), 0, 0) + directory +
     b"".join(sections.values()))

dictionary = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
dictionary += b" " * (-(len(dictionary) + 11) % 64) + b"\n"
npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(dictionary)) + dictionary + struct.pack("<6f", *range(6))
ids = b'row,path,label,class,camera,query,gallery\n0,a.jpg,0,"x, y",-1,1,1\n1,b.jpg,1,z,2,0,1\n'
meta = json.dumps({"gle": 1, "rows": 2, "dimensions": 3, "embeddings": 0, "labels": 0, "ids": 0, "job": {"a": 1}})
seed("embedding_folder", "small", sized(meta.encode(), ids) + npy)
