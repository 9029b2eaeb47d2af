"""Learning curves of gle-train and of PyTorch from the same weights and batches by the same recipe.

    learning_curve.py --build DIR --folder DIR --data DIR [--config FILE] [--seeds N ...] [--threads N] [--results FILE]

Every seed has weights and batches of its own; ours runs with each of them, PyTorch with the first. Ours also runs with the
first once more from weights that are off by rounding: what that changes is the measure of what PyTorch may differ by.
Writes all losses, and the processor time of each side, as JSON; curves that FILE has already are not made again."""
import argparse
import json
import os
import resource
import subprocess
import sys
import time
import tomllib

import numpy as np
import torch
import torch.nn.functional as F
from measure import Setup, group_loss
from networks import WithEmbedding

CLASSES = 751
ROUNDING = 2**-23


def processor_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def write_weights(path, seed, rounding=0.0):
    torch.manual_seed(seed)
    network = WithEmbedding("bn_inception", CLASSES)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            torch.nn.init.zeros_(module.bias)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 1 + rounding * (2 * torch.randint(2, parameter.shape) - 1)
    torch.save(network.net.state_dict(), path)


def run_ours(setup, options, side, weights, seed):
    out = os.path.join(setup.folder, f"{side}-{seed}")
    before = processor_seconds(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run([setup.program("gle-train"), "--config", options.config, "--data", options.data, "--weights", weights,
                    "--seed", str(seed), "--out", out, "--force", "--quiet", "--threads", str(options.threads)],
                   check=True)
    took = time.perf_counter() - begin
    processor = processor_seconds(resource.RUSAGE_CHILDREN) - before
    with open(os.path.join(out, "metrics.jsonl")) as lines:
        steps = [json.loads(line) for line in lines]
    losses = [step["loss"] for step in steps if step["kind"] == "training"]
    return {"side": side, "seed": seed, "seconds": took, "processor_seconds": processor, "loss": losses}


def read_exactly(pipe, dtype, shape):
    wanted = int(np.prod(shape)) * np.dtype(dtype).itemsize
    found = pipe.read(wanted)
    return np.frombuffer(found, dtype).reshape(shape) if len(found) == wanted else None


def batches(setup, options, seed):
    command = [setup.program("gle-peer-batches"), options.config, f"data.path={options.data}", f"run.seed={seed}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=1 << 20) as process:
        n, h, w = map(int, process.stdout.readline().split())
        while (labels := read_exactly(process.stdout, np.int32, (n,))) is not None:
            images = read_exactly(process.stdout, np.float32, (n, h, w, 3))
            yield torch.tensor(images).permute(0, 3, 1, 2), torch.tensor(labels, dtype=torch.int64)
        if process.wait() != 0:
            raise SystemExit(f"gle-peer-batches ended with {process.returncode}")


def run_theirs(setup, options, config, weights, seed):
    """RAdam, smoothed cross-entropy, and from phase 2 on the Group Loss beside it; the config's first anchors."""
    first, second, group = config["phase1"], config["phase2"], config["group_loss"]
    anchors = torch.arange(second["classes"] * second["samples"]) % second["samples"] < group["anchors"]
    smoothing = config["loss"]["smoothing"]
    network = WithEmbedding("bn_inception", CLASSES)
    network.net.load_state_dict(torch.load(weights))
    network.train().to(memory_format=torch.channels_last)
    optimiser = torch.optim.RAdam(network.parameters(), lr=second["learning_rate"], weight_decay=second["weight_decay"],
                                  decoupled_weight_decay=True, foreach=True)
    losses = []
    before, begin = processor_seconds(resource.RUSAGE_SELF), time.perf_counter()
    for images, labels in batches(setup, options, seed):
        optimiser.zero_grad(set_to_none=True)
        embeddings, logits = network(images.contiguous(memory_format=torch.channels_last))
        loss = F.cross_entropy(logits, labels, label_smoothing=smoothing)
        if len(losses) >= first["steps"]:
            over_all = group_loss(embeddings, logits, labels, anchors, group["steps"], group["temperature"])
            loss = loss + over_all * len(labels) / (~anchors).sum()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return {"side": "torch", "seed": seed, "seconds": time.perf_counter() - begin,
            "processor_seconds": processor_seconds(resource.RUSAGE_SELF) - before, "loss": losses}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--config", default="tools/configs/runs/market-curve.toml")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    torch.set_num_threads(options.threads)
    setup = Setup(options.build, options.folder, None, 1)
    with open(options.config, "rb") as file:
        config = tomllib.load(file)

    curves = []
    if options.results and os.path.exists(options.results):
        with open(options.results) as file:
            curves = json.load(file)["curves"]

    def make(side, seed, run):
        if any(curve["side"] == side and curve["seed"] == seed for curve in curves):
            return
        weights = os.path.join(setup.folder, f"start-{side}-{seed}.pth")
        write_weights(weights, seed, ROUNDING if side == "gle-rounding" else 0.0)
        curve = run(weights)
        curves.append(curve | {"loss": [round(loss, 5) for loss in curve["loss"]]})
        print(f"{side}, seed {seed}: {len(curve['loss'])} steps, loss {curve['loss'][0]:.4f} to "
              f"{np.mean(curve['loss'][-20:]):.4f}, processor {curve['processor_seconds']:.0f} s", flush=True)
        if options.results:
            with open(options.results, "w") as out:
                json.dump({"versions": {"torch": torch.__version__, "numpy": np.__version__},
                           "threads": options.threads, "curves": curves}, out)
                out.write("\n")

    for seed in options.seeds:
        make("gle", seed, lambda weights: run_ours(setup, options, "gle", weights, seed))
        if seed == options.seeds[0]:
            make("torch", seed, lambda weights: run_theirs(setup, options, config, weights, seed))
            make("gle-rounding", seed, lambda weights: run_ours(setup, options, "gle-rounding", weights, seed))


if __name__ == "__main__":
    sys.exit(main())
