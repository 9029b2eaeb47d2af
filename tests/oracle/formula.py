"""Weights and images from a formula, which tests/models/formula.h computes too: fixtures need not hold them."""
import numpy


def uniform(name, count):
    """In [-1, 1), multiples of 2**-23: a hash of the name and the index."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(h) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x = x ^ (x >> numpy.uint64(31))
    return (x >> numpy.uint64(40)).astype("f8") * 2.0**-23 - 1


def value_of(name, shape):
    """The tensor `name` of a state_dict, float32."""
    u = uniform(name, int(numpy.prod(shape)))
    if name.endswith("running_var"):
        v = 1 + 0.5 * u
    elif name.endswith("running_mean"):
        v = 0.1 * u
    elif len(shape) >= 2:
        v = u * numpy.sqrt(6 / numpy.prod(shape[1:]))
    elif name.endswith(".weight"):
        v = 1 + 0.25 * u
    else:  # most of a channel on one side of the kink of ReLU, where rounding would decide
        v = numpy.where(u < 0, -3.5, 3.5) + 0.1 * u
    return v.astype("f4").reshape(shape)
