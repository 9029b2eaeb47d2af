"""Writes tests/models/fixtures/parity_<network>.npz: what PyTorch computes, in double precision, with the published
definitions of the networks (pretrainedmodels, torchvision) from weights and images that a formula gives.

Both sides compute the formula, so a fixture holds results only: embeddings and logits in inference, with and without
the GL++ switches; for three training steps the logits; for every parameter's first gradient its norm and eight
projections; and projections of all running statistics after the third step.
"""
import pathlib
import sys

import numpy
import pretrainedmodels
import torch
import torch.nn.functional as F
import torchvision
from formula import uniform, value_of

BATCH, CLASSES, STEPS, RATE, PROJECTIONS = 4, 10, 3, 1e-3, 8
STEADY = 7e-4
LEAKY, MIXED, BETA = 0.3, 0.4, 0.25
torch.set_default_dtype(torch.float64)


class Net(torch.nn.Module):
    """A published backbone with a head of ours, names as the engine has them."""

    def __init__(self, name, head, momentum):
        super().__init__()
        self.name, self.head = name, head
        if name == "bn_inception":
            self.backbone, channels, self.last = pretrainedmodels.bninception(10, None), 1024, "last_linear"
        elif name == "inception_v3":
            self.backbone = torchvision.models.inception_v3(weights=None, init_weights=False, aux_logits=False)
            channels, self.last = 2048, "fc"
        else:
            self.backbone = getattr(torchvision.models, name)(weights=None)
            channels, self.last = self.backbone.classifier.in_features, "classifier"
        setattr(self.backbone, self.last, None)
        self.embedding = torch.nn.Linear(channels, head["embedding"]) if "embedding" in head else None
        channels = head.get("embedding", channels)
        self.bottleneck = torch.nn.BatchNorm1d(channels) if head.get("bnneck") else None
        self.linear = torch.nn.Linear(channels, CLASSES, bias=not head)
        for m in self.modules():
            if isinstance(m, (torch.nn.BatchNorm2d, torch.nn.BatchNorm1d)):
                m.momentum = momentum
        if self.bottleneck is not None:
            self.bottleneck.bias.requires_grad_(False)
        if name == "inception_v3" and self.bottleneck is not None:
            self.bottleneck.eps = 1e-3
        with torch.no_grad():
            for key, t in self.named():
                t.copy_(torch.tensor(value_of(key, tuple(t.shape))))

    def named(self, state=True):
        tensors = list(self.named_parameters())
        if state:
            tensors += [(k, b) for k, b in self.named_buffers() if not k.endswith("num_batches_tracked")]
        return [(k.replace("backbone.", "").replace("linear.", self.last + ".", 1) if k.startswith("linear.")
                 else k.replace("backbone.", ""), t) for k, t in tensors]

    def features(self, x, slope):
        b = self.backbone
        if self.name == "bn_inception":
            for unit in ("1x1", "3x3", "double_3x3_2", "pool_proj"):
                setattr(b, "inception_5b_relu_" + unit, torch.nn.LeakyReLU(slope))
            return b.features(x)
        if self.name == "inception_v3":
            def leaky(unit):
                return lambda y: F.leaky_relu(unit.bn(unit.conv(y)), slope)
            for key, unit in b.Mixed_7c.named_children():
                if key not in ("branch3x3_1", "branch3x3dbl_1", "branch3x3dbl_2"):
                    unit.forward = leaky(unit)
            b.transform_input = False
            b.avgpool, b.dropout, b.fc = torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity()
            kept = []
            hook = b.Mixed_7c.register_forward_hook(lambda m, i, o: kept.append(o))
            b(x)
            hook.remove()
            return kept[0]
        return F.leaky_relu(b.features(x), slope)

    def forward(self, x, slope=0.0, mixed=0.0):
        f = self.features(x, slope)
        e = mixed * f.amax((2, 3)) + (1 - mixed) * f.mean((2, 3))
        if self.embedding is not None:
            e = self.embedding(e)
        return e, self.linear(self.bottleneck(e) if self.bottleneck is not None else e)


def projections(name, t):
    v = torch.tensor(uniform("projection " + name, t.numel() * PROJECTIONS)).reshape(PROJECTIONS, -1)
    return (v @ t.reshape(-1)).numpy()


def images(step, size, salt):
    return torch.tensor(uniform("images %d %d" % (step, salt), BATCH * 3 * size[0] * size[1])).reshape(BATCH, 3, *size)


def beta_normalise(e):
    return e / e.norm(dim=1, keepdim=True).clamp_min(1e-12) + BETA * e


def first_gradients(net, x):
    e, z = net.to(x.dtype).train()(x)
    (z * cotangent("logits", z)).sum().add((e * cotangent("embedding", e)).sum()).backward()
    return {k: p.grad.double() for k, p in net.named(state=False) if p.requires_grad}


def errors(found, expected):
    """Of each gradient, relative to its norm; a bias in front of a batch-norm has none but rounding."""
    whole = numpy.sqrt(sum(g.norm().item() ** 2 for g in expected.values()))
    return {k: (found[k] - g).norm().item() / max(g.norm().item(), 1e-4 * whole) for k, g in expected.items()}


def steady_salt(make_net, size):
    """Images for which no value near the kink of ReLU decides a gradient: where rounding put such a value on the other
    side, the gradients of a deep layer, of a few pixels each, would differ by far more than rounding."""
    for salt in range(100):
        x = images(1, size, salt)
        expected = first_gradients(make_net(), x)
        worst = max(errors(first_gradients(make_net(), x.float()), expected).values())
        for k in range(3):
            if worst > STEADY:
                break
            noise = torch.tensor(uniform("noise %d" % k, x.numel())).reshape(x.shape)
            worst = max(worst, max(errors(first_gradients(make_net(), x + 3e-7 * noise), expected).values()))
        print("salt", salt, "worst error of a gradient %.1e" % worst, flush=True)
        if worst <= STEADY:
            return salt
    raise SystemExit("no steady images")


def cotangent(what, t):
    return torch.tensor(uniform("cotangent " + what, t.numel())).reshape(t.shape).to(t.dtype)


def make(folder, name, size, head, momentum):
    salt = steady_salt(lambda: Net(name, head, momentum), size)
    net = Net(name, head, momentum)
    out = {"size": numpy.array(size), "salt": salt, "momentum": momentum, "embedding": head.get("embedding", 0),
           "bnneck": bool(head.get("bnneck", False)), "leaky": LEAKY, "mixed": MIXED, "beta": BETA, "rate": RATE,
           "versions": "torch %s torchvision %s pretrainedmodels %s numpy %s" % (
               torch.__version__, torchvision.__version__, pretrainedmodels.__version__, numpy.__version__)}
    net.eval()
    with torch.no_grad():
        x = images(0, size, salt)
        e, z = net(x)
        out["eval_embedding"], out["eval_logits"] = e.numpy().astype("f4"), z.numpy().astype("f4")
        both = [beta_normalise(net(i, LEAKY, MIXED)[0]) for i in (x, x.flip(3))]
        out["switched_embedding"] = ((both[0] + both[1]) / 2).numpy().astype("f4")
    net.train()
    logits = []
    for step in range(1, STEPS + 1):
        e, z = net(images(step, size, salt))
        net.zero_grad()
        (z * cotangent("logits", z)).sum().add((e * cotangent("embedding", e)).sum()).backward()
        logits.append(z.detach().numpy().astype("f4"))
        trained = [(k, p) for k, p in net.named(state=False) if p.requires_grad]
        if step == 1:
            out["names"] = numpy.array([k for k, _ in trained])
            out["gradient_norms"] = numpy.array([p.grad.norm().item() for _, p in trained])
            out["gradient_projections"] = numpy.stack([projections(k, p.grad) for k, p in trained]).astype("f4")
        with torch.no_grad():
            for _, p in trained:
                p -= RATE * p.grad
    out["train_logits"] = numpy.stack(logits)
    state = [(k, t) for k, t in net.named() if "running_" in k]
    out["state_names"] = numpy.array([k for k, _ in state])
    out["state_norms"] = numpy.array([t.norm().item() for _, t in state])
    out["state_projections"] = numpy.stack([projections(k, t) for k, t in state]).astype("f4")
    out["parameters"] = sum(p.numel() for p in net.parameters())
    numpy.savez_compressed(folder / ("parity_%s.npz" % name), **out)
    print(name, out["parameters"], "global gradient", float(numpy.linalg.norm(out["gradient_norms"])))


folder = pathlib.Path(__file__).resolve().parent.parent / "models" / "fixtures"
cases = {
    "bn_inception": ((96, 96), {}, 0.9),
    "densenet121": ((96, 64), {"bnneck": True}, 0.1),
    "densenet161": ((96, 64), {}, 0.1),
    "densenet169": ((96, 64), {}, 0.1),
    "densenet201": ((96, 64), {}, 0.1),
    "inception_v3": ((107, 107), {"embedding": 24}, 0.1),
}
for name in sys.argv[1:] or cases:
    make(folder, name, *cases[name])
