"""Peak resident memory of one training step, ours against PyTorch's, each in a process of its own.

    python bench/peers/memory.py BUILD_DIR [bn_inception|densenet161 ...]

Ours is bench/peers/memory.cpp (target gle-peer-memory). PyTorch runs the published network in channels-last, with
cross-entropy, two steps so that buffers are in their steady state; memory_efficient=True is its own recomputation.
"""
import resource
import subprocess
import sys

CASES = {
    "bn_inception": (32, 227, 227, 100, False),
    "densenet161": (16, 256, 128, 751, True),
}


def peer(name, batch, h, w, classes, efficient):
    import torch

    torch.manual_seed(0)
    if name == "bn_inception":
        import pretrainedmodels

        network = pretrainedmodels.bninception(classes, None)
        network.global_pool = torch.nn.AdaptiveAvgPool2d(1)
    else:
        import torchvision

        network = getattr(torchvision.models, name)(weights=None, num_classes=classes, memory_efficient=efficient)
    network = network.train().to(memory_format=torch.channels_last)
    images = torch.randn(batch, 3, h, w).contiguous(memory_format=torch.channels_last)
    labels = torch.arange(batch) % classes
    for _ in range(2):
        network.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, torch.__version__)


def main():
    if sys.argv[1] == "--peer":
        batch, h, w, classes, _ = CASES[sys.argv[2]]
        return peer(sys.argv[2], batch, h, w, classes, sys.argv[3] == "efficient")
    build = sys.argv[1]
    for name in sys.argv[2:] or CASES:
        batch, h, w, classes, recompute = CASES[name]
        command = [build + "/bench/gle-peer-memory", name, str(batch), str(h), str(w), str(classes)]
        rows = [("gle", command)]
        if recompute:
            rows.append(("gle, recomputing", command + ["recompute"]))
        rows.append(("PyTorch", [sys.executable, __file__, "--peer", name, "plain"]))
        if recompute:
            rows.append(("PyTorch, memory_efficient", [sys.executable, __file__, "--peer", name, "efficient"]))
        results = {}
        for label, run in rows:
            results[label] = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split(None, 1)
            print("%-14s batch %d, %dx%d: %-26s %6s MiB   %s" % (name, batch, h, w, label, results[label][0],
                                                               results[label][1].strip()), flush=True)
        ours = int(results["gle, recomputing" if recompute else "gle"][0])
        print("%-14s ours is %.0f%% of PyTorch's" % (name, 100 * ours / int(results["PyTorch"][0])), flush=True)


main()
