"""Writes tests/models/fixtures/light_<network>.npz from light_densenet121 and light_inception_v2 of the onnx package:
the weights of those files under the engine's names (nearly all of them are one constant), the output that the package
expects of them, and what onnxruntime gives from the same graphs with the weights of formula.py. The latter tells more,
for with constants all classes come out alike.
"""
import pathlib
import re

import numpy
import onnx
import onnxruntime
from formula import uniform, value_of
from onnx import numpy_helper


def densenet_name(name):
    fixed = {"conv1": "features.conv0", "conv1/bn": "features.norm0", "conv5_blk/bn": "features.norm5",
             "fc6": "classifier"}
    layer = re.fullmatch(r"conv(\d)_(\d+)/x(\d)(/bn)?", name)
    between = re.fullmatch(r"conv(\d)_blk(/bn)?", name)
    if name in fixed:
        return fixed[name]
    if layer:
        return "features.denseblock%d.denselayer%s.%s%s" % (
            int(layer[1]) - 1, layer[2], "norm" if layer[4] else "conv", layer[3])
    return "features.transition%d.%s" % (int(between[1]) - 1, "norm" if between[2] else "conv")


def inception_name(name):
    name = name.replace("loss3/classifier", "last_linear").replace("double3x3", "double_3x3")
    return name.replace("double_3x3a", "double_3x3_1").replace("double_3x3b", "double_3x3_2").replace("/", "_")


class Light:
    """One of the package's models: `units` are its convolutions and batch-norms, `values` its constants."""

    def __init__(self, name, rename):
        folder = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        self.model = onnx.load(folder / ("light_%s.onnx" % name))
        output = onnx.TensorProto()
        output.ParseFromString((folder / ("light_%s_output_0.pb" % name)).read_bytes())
        self.expected = numpy_helper.to_array(output).reshape(-1)
        graph = self.model.graph
        self.values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        for node in graph.node:
            if node.op_type == "ConstantOfShape":
                fill = numpy_helper.to_array(node.attribute[0].t)[0]
                self.values[node.output[0]] = numpy.full(self.values[node.input[0]], fill, "f4")
        self.units = []
        for node in graph.node:
            if node.op_type in ("Conv", "Gemm"):
                self.units.append((rename(node.input[1].removesuffix("_w_0")), node.input[1:]))
            elif node.op_type == "BatchNormalization":
                norm = node.input[1].removesuffix("_scale_0")
                after = norm + "/sc" if norm + "/sc_w_0" in self.values else norm
                self.units.append((rename(norm), [*node.input[1:], after + "_w_0", after + "_b_0"]))

    def engine_weights(self):
        for name, inputs in self.units:
            values = [self.values[i].astype("f8") for i in inputs]
            if len(inputs) == 6:  # batch-norm, then a scale and a shift of its own
                scale, bias, mean, variance, w, b = values
                yield name + ".weight", scale * w
                yield name + ".bias", bias * w + b
                yield name + ".running_mean", mean
                yield name + ".running_var", variance
            else:
                yield name + ".weight", values[0]
                if len(values) == 2:
                    yield name + ".bias", values[1]

    def set_formula(self):
        for name, inputs in self.units:
            def put(i, value):
                self.values[inputs[i]] = value.astype("f4").reshape(self.values[inputs[i]].shape)
            shape = self.values[inputs[0]].shape
            if len(inputs) == 6:
                for i, part in enumerate(("weight", "bias", "running_mean", "running_var")):
                    put(i, value_of("%s.%s" % (name, part), shape))
                put(4, numpy.ones(shape))
                put(5, numpy.zeros(shape))
            else:
                put(0, value_of(name + ".weight", shape))
                if len(inputs) == 2:
                    put(1, value_of(name + ".bias", self.values[inputs[1]].shape))

    def run(self, image, outputs):
        graph = onnx.GraphProto()
        graph.CopyFrom(self.model.graph)
        for field in ("node", "initializer", "input", "output"):
            graph.ClearField(field)
        graph.node.extend(n for n in self.model.graph.node if n.op_type != "ConstantOfShape")
        graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in self.values.items() if "__SHAPE" not in k)
        graph.input.extend(i for i in self.model.graph.input if i.name == "data_0")
        graph.output.extend(onnx.ValueInfoProto(name=o) for o in outputs)
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.ir_version = 8  # initializers need not be inputs
        model.graph.CopyFrom(graph)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return [y.reshape(-1) for y in session.run(outputs, {"data_0": image})]


def make(network, rename):
    light = Light(network, rename)
    out = {"expected": light.expected, "versions": "onnx %s onnxruntime %s numpy %s" % (
        onnx.__version__, onnxruntime.__version__, numpy.__version__)}
    count = 3 * 224 * 224
    image = (numpy.arange(count).reshape(1, 3, 224, 224) / count).astype("f4")  # as the package's own tests have it
    found = light.run(image, [light.model.graph.output[0].name])[0]
    print(network, "expected %.6f to %.6f, onnxruntime is off by %.1e" % (
        light.expected.min(), light.expected.max(), abs(found - light.expected).max()))
    names, constants = [], []
    for key, value in light.engine_weights():
        same = value.min() == value.max()
        names.append(key)
        constants.append(value.flat[0] if same else numpy.nan)
        if not same:
            out["weight " + key] = value.reshape(-1).astype("f4")
    out["names"], out["constants"] = numpy.array(names), numpy.array(constants)

    light.set_formula()
    nodes = list(light.model.graph.node)
    last = max(i for i, n in enumerate(nodes) if n.op_type in ("Conv", "Gemm"))
    pool = max(i for i, n in enumerate(nodes) if n.op_type in ("AveragePool", "GlobalAveragePool"))
    x = uniform("light images", count).astype("f4").reshape(1, 3, 224, 224)
    out["formula_embedding"], out["formula_logits"] = light.run(x, [nodes[pool].output[0], nodes[last].output[0]])
    numpy.savez_compressed(pathlib.Path(__file__).resolve().parent.parent / "models" / "fixtures" /
                           ("light_%s.npz" % network), **out)


make("densenet121", densenet_name)
make("inception_v2", inception_name)
