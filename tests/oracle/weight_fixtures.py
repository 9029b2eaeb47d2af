"""Writes small weight files of every kind to tests/models/fixtures/weights/, and malicious.zip: pickles that must be
refused, each named after what it tries."""
import collections
import io
import pathlib
import zipfile

import numpy
import torch
from safetensors.torch import save_file

folder = pathlib.Path(__file__).resolve().parent.parent / "models" / "fixtures" / "weights"
folder.mkdir(exist_ok=True)
base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
state = collections.OrderedDict(
    [
        ("conv.weight", base / 8),
        ("half", (base[0] / 4).half()),
        ("bfloat", (base[1]).bfloat16()),
        ("double", base[0].double() / 3),
        ("turned", base.permute(2, 0, 1)),  # strides that are not in order
        ("part", base[1, 1:, 2]),  # an offset into a shared storage
        ("bn.num_batches_tracked", torch.tensor(7)),
        ("scalar", torch.tensor(0.5)),
        ("empty", torch.zeros(0, 3)),
    ]
)
torch.save(state, folder / "zip.pth")
torch.save(state, folder / "legacy.pth", _use_new_zipfile_serialization=False)
module = torch.nn.Linear(3, 2)
optimiser = torch.optim.RAdam(module.parameters())
module(torch.ones(1, 3)).sum().backward()
optimiser.step()
with torch.no_grad():
    module.weight.copy_(base[0, :2, :3] / 2)
    module.bias.copy_(torch.tensor([1.0, 2.0]))
torch.save({"state_dict": {"module." + k: v for k, v in module.state_dict().items()}, "epoch": 3, "rank1": 0.5,
            "optimizer": optimiser.state_dict(), "notes": ["text", None, True, (1, 2), 2**40, -3]},
           folder / "checkpoint.pth.tar")
torch.save({"net": module.state_dict(), "p": torch.nn.Parameter(torch.ones(2))}, folder / "parameter.pth")


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = module
        self.sizes = [1, 2, 3]

    def forward(self, x):
        return self.inner(x) * len(self.sizes)


torch.jit.script(Outer()).save(str(folder / "script.pt"))
save_file({k: v.contiguous().clone() for k, v in state.items()}, folder / "tensors.safetensors", {"by": "safetensors"})
numpy.savez(folder / "arrays.npz", **{k: v.contiguous().float().numpy() for k, v in state.items()
                                      if "num_batches" not in k}, steps=numpy.array(7))



def raw(module, name, arguments=b")", tail=b"R."):
    return b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n" + arguments + tail


text = lambda s: b"X" + len(s).to_bytes(4, "little") + s.encode()
one = text("id") + b"\x85"
malicious = {}
for m, n in [("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec"), ("__builtin__", "eval"),
             ("builtins", "getattr"), ("builtins", "__import__"), ("builtins", "open"), ("subprocess", "Popen"),
             ("subprocess", "check_output"), ("sys", "exit"), ("runpy", "run_path"), ("importlib", "import_module"),
             ("pty", "spawn"), ("socket", "socket"), ("webbrowser", "open"), ("ctypes", "CDLL"), ("shutil", "rmtree"),
             ("pickle", "loads"), ("_pickle", "loads"), ("marshal", "loads"), ("operator", "attrgetter"),
             ("functools", "partial"), ("types", "FunctionType"), ("code", "interact"), ("timeit", "timeit"),
             ("torch", "load"), ("torch.hub", "load"), ("torch.storage", "_load_from_bytes"), ("torch.jit", "load"),
             ("torch._utils", "_rebuild_device_tensor_from_numpy"), ("torch.utils.model_zoo", "load_url"),
             ("numpy", "load"), ("numpy.core.multiarray", "_reconstruct"), ("torch.distributed.rpc", "rpc_sync"),
             ("torch.nn.modules.linear", "Linear"), ("collections", "namedtuple"), ("__main__", "Model"),
             ("__torch__", "Module"), ("torch", "FloatTensor"), ("os.path", "exists"), ("torch", "Size.__class__")]:
    malicious["call %s.%s" % (m, n)] = raw(m, n, one)
for m, n in [("os", "system"), ("builtins", "eval"), ("nt", "system"), ("torch", "load")]:
    malicious["stack_global %s.%s" % (m, n)] = (
        b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00" + text(m) + text(n) + b"\x93" + one + b"R.")
    malicious["newobj %s.%s" % (m, n)] = raw(m, n, b")", b"\x81.")
    malicious["unused %s.%s" % (m, n)] = raw(m, n, b"", b"0N.")
malicious["instance"] = b"(ios\nsystem\n."
malicious["object"] = b"(cos\nsystem\no."
malicious["extension"] = b"\x80\x02\x82\x01."
malicious["newobj_ex"] = b"\x80\x04ccollections\nOrderedDict\n)}\x92."
malicious["call a dictionary"] = b"\x80\x02}" + one + b"R."
malicious["build a tensor"] = raw("collections", "OrderedDict", b")", b"R}b" + b"K\x01}b.")
malicious["build a name"] = b"\x80\x02ccollections\nOrderedDict\n}b."
malicious["dictionary with arguments"] = raw("collections", "OrderedDict", one)
malicious["newobj of a dictionary"] = raw("collections", "OrderedDict", b")", b"\x81.")
malicious["memo bomb"] = b"\x80\x02Nr\xff\xff\xff\x7f."
malicious["memo missing"] = b"\x80\x02h\x07."
malicious["text beyond the end"] = b"\x80\x02X\xff\xff\xff\xffabc."
malicious["no mark"] = b"\x80\x02Nt."
malicious["pop the mark"] = b"\x80\x02(0."
malicious["odd dictionary"] = b"\x80\x02}(NNNu."
malicious["persistent text"] = b"\x80\x02" + text("x") + b"Q."
malicious["persistent module"] = b"\x80\x02(" + text("module") + b"NNNNtQ."
malicious["endless"] = b"\x80\x02" + b"N" * 50
malicious["proto 0"] = b"cos\nsystem\n(S'id'\ntR."
with zipfile.ZipFile(folder / "malicious.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in malicious.items():
        archive.writestr(zipfile.ZipInfo(name), data)

# Tensors that lie about their storages, in whole zip files.
def lying(name, sizes, strides, offset=0, elements=6, stored=24):
    number = lambda i: b"\x8a\x08" + int(i).to_bytes(8, "little", signed=True)
    sequence = lambda s: b"(" + b"".join(map(number, s)) + b"t"
    pkl = (b"\x80\x02}" + text("w") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + b"(" + text("storage") +
           b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(elements) + b"tQ" + number(offset) +
           sequence(sizes) + sequence(strides) + b"\x89ccollections\nOrderedDict\n)RtRs.")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("archive/data.pkl"), pkl)
        archive.writestr(zipfile.ZipInfo("archive/data/0"), bytes(stored))
    return name, out.getvalue()


with zipfile.ZipFile(folder / "lies.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in [
        lying("sound", [2, 3], [3, 1]),
        lying("beyond the end", [2, 4], [3, 1]),
        lying("offset", [2, 3], [3, 1], offset=1),
        lying("negative offset", [2, 3], [3, 1], offset=-1),
        lying("negative stride", [2, 3], [-3, 1]),
        lying("negative size", [-2, 3], [3, 1]),
        lying("overflow", [2**32, 2**32], [1, 1]),
        lying("stride overflow", [2, 3], [2**62, 2**62]),
        lying("bomb", [2**40], [0]),
        lying("storage too small", [2, 3], [3, 1], stored=20),
        lying("storage too large", [2, 3], [3, 1], elements=2**62),
        lying("ranks differ", [2, 3], [3]),
    ]:
        archive.writestr(zipfile.ZipInfo(name), data)
(folder / "versions.txt").write_text("torch %s, numpy %s, safetensors %s\n" % (
    torch.__version__, numpy.__version__, __import__("safetensors").__version__))
print(len(malicious), "malicious")
