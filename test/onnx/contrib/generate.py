#!/usr/bin/env python3
"""Writes the cases of ContribTest.cpp: nodes of the domains com.microsoft and ai.onnx.ml with inputs, and ONNX Runtime's
results.

    .build/peers/bin/python test/onnx/contrib/generate.py

Each case has a node, its attributes, inputs and outputs; inputs marked `constant` are initializers. Sizes are odd where
the op allows it."""
import json
import math
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import ml_cases

DOMAIN = "com.microsoft"
HERE = pathlib.Path(__file__).resolve().parent
random = np.random.default_rng(7)


def floats(*shape):
    return np.round(random.standard_normal(shape), 3).astype(np.float32)


def integers(low, high, shape, dtype=np.int32):
    return random.integers(low, high, shape).astype(dtype)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


class Constant:
    def __init__(self, array):
        self.array = array


def ofFourBits(array):
    import ml_dtypes
    return Constant(array.astype(ml_dtypes.uint4))


def arrayJson(array):
    if str(array.dtype) == "uint4":
        return {"type": "uint4", "shape": list(array.shape), "values": array.astype(int).ravel().tolist()}
    number = lambda v: None if math.isnan(v) else float(f"{v:.7g}")
    values = [*map(number, array.ravel().tolist())] if array.dtype.kind == "f" else array.ravel().tolist()
    return {"type": str(array.dtype), "shape": list(array.shape), "values": values}


def attributeJson(value):
    if isinstance(value, TensorProto):
        return arrayJson(onnx.numpy_helper.to_array(value))
    if isinstance(value, list):
        return [attributeJson(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def tensorFrom(result, attributes):
    """Burin's representation of labels that are strings, and of the result of a ZipMap."""
    if isinstance(result, list):
        labels = attributes["classlabels_int64s"]
        return np.array([[row[label] for label in labels] for row in result], np.float32)
    if result.dtype.kind in "OU":
        return np.array([attributes["classlabels_strings"].index(label) for label in result])
    return result


def run(op, inputs, outputs, attributes, domain, version):
    """Returns the named outputs of ONNX Runtime; the name "" omits an output."""
    arrays = [getattr(x, "array", x) for x in inputs]
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(arrays)]
    element = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "case",
        [helper.make_tensor_value_info(n, element(x.array if isinstance(x, Constant) else x), arrays[i].shape)
         for i, (n, x) in enumerate(zip(names, inputs)) if x is not None and not isinstance(x, Constant)],
        [helper.make_empty_tensor_value_info(name) for name in outputs if name],
        [onnx.numpy_helper.from_array(x.array, n) for n, x in zip(names, inputs) if isinstance(x, Constant)])
    model = helper.make_model(graph, ir_version=10,
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1),
                                             helper.make_opsetid(ml_cases.DOMAIN, version)])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fed = {n: x for n, x in zip(names, inputs) if x is not None and not isinstance(x, Constant)}
    return session.run([name for name in outputs if name], fed)


def case(op, inputs, outputs=("y",), domain=DOMAIN, name="", tolerance=1e-5, version=3, **attributes):
    try:
        results = run(op, inputs, list(outputs), attributes, domain, version)
    except Exception as problem:
        print(f"NOT WRITTEN: {name or op}: {str(problem)[:300]}")
        return None
    described = []
    for x in inputs:
        if x is None:
            described.append(None)
        else:
            described.append(arrayJson(getattr(x, "array", x)) | ({"constant": True} if isinstance(x, Constant) else {}))
    return {"op": op, "name": name or op, "domain": domain,
            "attributes": {key: attributeJson(value) for key, value in attributes.items()}, "inputs": described,
            "outputs": list(outputs), "expected": [arrayJson(tensorFrom(r, attributes)) for r in results],
            "tolerance": tolerance}


def computed(op, inputs, result, name="", **attributes):
    """A case with results by the definition, where ONNX Runtime has no kernel for the CPU."""
    return {"op": op, "name": name or op, "domain": DOMAIN, "attributes": attributes, "inputs": [*map(arrayJson, inputs)],
            "outputs": ["y"], "expected": [arrayJson(result.astype(np.float32))], "tolerance": 1e-5}


def silu(x):
    return x / (1 + np.exp(-x))


def biasSplitGelu(x, bias):
    left, right = np.split(x.astype(np.float64) + bias, 2, -1)
    return left * right / 2 * (1 + np.vectorize(math.erf)(right / math.sqrt(2)))


def groupNorm(x, scale, shift, groups):
    """For channels-last images."""
    parts = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    normal = (parts - parts.mean((1, 3), keepdims=True)) / np.sqrt(parts.var((1, 3), keepdims=True) + 1e-5)
    return normal.reshape(x.shape) * scale + shift


def write(family, cases):
    cases = [c for c in cases if c]
    text = "[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n"
    (HERE / (family + ".json")).write_text(text)
    print(f"{family}: {len(cases)} cases")


def fused():
    x, w = floats(2, 3, 5), floats(5)
    image, weight, bias = floats(2, 3, 6, 5), floats(4, 3, 3, 3), floats(4)
    yield case("BiasGelu", [x, w])
    yield case("Gelu", [x])
    yield case("FastGelu", [x])
    yield case("FastGelu", [x, w], name="FastGelu of a bias")
    yield case("QuickGelu", [x], alpha=1.5)
    yield case("FusedMatMul", [floats(2, 3, 5), floats(2, 5, 4)], alpha=0.5)
    yield case("FusedMatMul", [floats(2, 5, 3), floats(2, 4, 5)], transA=1, transB=1, name="FusedMatMul transposed")
    yield case("FusedMatMul", [floats(3, 2, 5), floats(4, 2, 5)], transBatchA=1, transBatchB=1, transB=1,
               name="FusedMatMul with the batch in the middle")
    yield case("TransposeMatMul", [floats(3, 5), floats(4, 5)], transB=1)
    for activation, options in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.1})):
        yield case("FusedGemm", [floats(3, 5), floats(5, 4), floats(4)], activation=activation, alpha=0.5,
                   name="FusedGemm " + activation, **options)
    yield case("FusedConv", [image, weight, bias], activation="Relu", pads=[1, 1, 1, 1], strides=[2, 1])
    yield case("FusedConv", [image, weight, bias, floats(2, 4, 4, 3)], activation="Relu", name="FusedConv of a sum")
    yield case("FusedConv", [image, weight, bias], activation="HardSigmoid", activation_params=[0.2, 0.5],
               name="FusedConv HardSigmoid")
    yield case("FusedConv", [image, weight, bias], activation="Clip", activation_params=[0.0, 0.5], name="FusedConv Clip")
    yield case("Inverse", [floats(2, 5, 5) + 3 * np.eye(5, dtype=np.float32)], tolerance=1e-4)
    yield case("Inverse", [np.array([[0, 2, 0], [1, 0, 0], [0, 0, 4]], np.float32)], name="Inverse with pivots")
    yield case("CDist", [floats(3, 4), floats(5, 4)], metric="sqeuclidean", tolerance=1e-4)
    yield case("NhwcMaxPool", [integers(0, 255, (1, 6, 5, 8), np.uint8)], kernel_shape=[3, 2], strides=[2, 1],
               pads=[1, 0, 1, 1])
    yield case("Trilu", [floats(2, 4, 5)], upper=0)
    # ONNX Runtime has these only for GPUs
    yield computed("BiasSplitGelu", [x := floats(2, 3, 10), w := floats(10)], biasSplitGelu(x, w))
    last, scale, shift = floats(2, 3, 4, 8), floats(8), floats(8)
    yield computed("GroupNorm", [last, scale, shift], groupNorm(last, scale, shift, 2), groups=2, epsilon=1e-5)
    yield computed("GroupNorm", [last, scale, shift], silu(groupNorm(last, scale, shift, 4)), groups=4, activation=1,
                   epsilon=1e-5, name="GroupNorm with silu")


def skipNorm():
    x, skip, scale, shift, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    yield case("SkipLayerNormalization", [x, skip, scale, shift, bias], ("y", "", "", "sum"), epsilon=1e-5)
    yield case("SkipLayerNormalization", [x, skip, scale], name="SkipLayerNormalization without shift and bias")
    yield case("SkipLayerNormalization", [x, floats(1, 3, 8), scale, shift],
               name="SkipLayerNormalization of one skip for all")
    yield case("SkipSimplifiedLayerNormalization", [x, skip, scale, bias], ("y", "", "", "sum"), epsilon=1e-5)
    yield case("SimplifiedLayerNormalization", [x, scale], domain="", epsilon=1e-6, axis=-1)
    tokens, segments = integers(0, 9, (2, 5)), integers(0, 2, (2, 5))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
    tables = [floats(9, 8), floats(6, 8), floats(2, 8), scale, shift]
    yield case("EmbedLayerNormalization", [tokens, segments, *tables, mask], ("y", "lengths"))
    yield case("EmbedLayerNormalization", [tokens, None, tables[0], tables[1], None, scale, shift], ("y", "lengths"),
               name="EmbedLayerNormalization of words alone")


def attention():
    batch, length, width = 2, 3, 8
    x, weights, bias = floats(batch, length, width), floats(width, 3 * width), floats(3 * width)
    common = dict(num_heads=2)
    yield case("Attention", [x, weights, bias], **common)
    yield case("Attention", [x, weights, bias], unidirectional=1, name="Attention, causal", **common)
    yield case("Attention", [x, weights, bias, np.array([2, 3], np.int32)], name="Attention of lengths", **common)
    yield case("Attention", [x, weights, bias, np.array([[1, 1, 0], [1, 1, 1]], np.int32)], name="Attention with a mask",
               **common)
    yield case("Attention", [x, weights, bias, integers(0, 2, (batch, length, length))], name="Attention with a mask of pairs",
               **common)
    past = floats(2, batch, 2, 4, 4)
    yield case("Attention", [x, weights, bias, None, past], ("y", "present"), unidirectional=1, name="Attention with a past",
               **common)
    yield case("Attention", [x, weights, bias, None, None, floats(1, 2, length, length)], name="Attention with a bias", **common)
    yield case("Attention", [x, floats(width, 20), floats(20)], qkv_hidden_sizes=[8, 8, 4], name="Attention of narrow values",
               **common)
    query, key, value = floats(batch, 3, width), floats(batch, 5, width), floats(batch, 5, width)
    yield case("MultiHeadAttention", [query, key, value], **common)
    yield case("MultiHeadAttention", [query, key, value, floats(3 * width)], scale=0.3, name="MultiHeadAttention with biases",
               **common)
    yield case("MultiHeadAttention", [query, key, value, None, np.array([4, 2], np.int32)],
               name="MultiHeadAttention of lengths", **common)
    yield case("MultiHeadAttention", [query, key, value, None, integers(0, 2, (batch, 5))],
               name="MultiHeadAttention with a mask", **common)
    yield case("MultiHeadAttention", [query, key, value, None, None, floats(1, 2, 3, 5)],
               name="MultiHeadAttention with a bias of scores", **common)
    yield case("MultiHeadAttention", [query, floats(batch, 2, 5, 4), floats(batch, 2, 5, 4)],
               name="MultiHeadAttention across", **common)
    yield case("MultiHeadAttention", [query, floats(batch, 3, width), floats(batch, 3, width), None, None, None,
                                      floats(batch, 2, 4, 4), floats(batch, 2, 4, 4)], ("y", "key", "value"),
               unidirectional=1, name="MultiHeadAttention with a past", **common)
    group = dict(num_heads=4, kv_num_heads=2)
    angles = floats(16, 8)
    tables = [np.cos(angles), np.sin(angles)]
    q, k, v = floats(batch, 3, 64), floats(batch, 3, 32), floats(batch, 3, 32)
    empty = np.zeros((batch, 2, 0, 16), np.float32)
    caches = [floats(batch, 2, 5, 16), floats(batch, 2, 5, 16)]
    outputs = ("y", "key", "value")
    total = lambda n: Constant(number(n, np.int32))
    yield case("GroupQueryAttention", [q, k, v, empty, empty, np.array([2, 2], np.int32), total(3)], outputs, **group)
    yield case("GroupQueryAttention", [q, k, v, empty, empty, np.array([2, 2], np.int32), total(3), *tables], outputs,
               do_rotary=1, name="GroupQueryAttention, rotated", **group)
    yield case("GroupQueryAttention", [floats(batch, 3, 128), None, None, empty, empty, np.array([2, 2], np.int32), total(3),
                                       *tables], outputs, do_rotary=1, rotary_interleaved=1,
               name="GroupQueryAttention of one product", **group)
    one = [floats(batch, 1, 64), floats(batch, 1, 32), floats(batch, 1, 32)]
    yield case("GroupQueryAttention", [*one, *caches, np.array([5, 5], np.int32), total(6), *tables], outputs, do_rotary=1,
               name="GroupQueryAttention with a past", **group)
    yield case("GroupQueryAttention", [*one, *caches, np.array([5, 5], np.int32), total(6)], outputs, local_window_size=3,
               softcap=2.0, name="GroupQueryAttention of a window", **group)
    places = np.array([[0, 1, 2], [4, 5, 6]], np.int64)
    yield case("RotaryEmbedding", [floats(batch, 3, 8), places, floats(16, 2), floats(16, 2)])
    yield case("RotaryEmbedding", [floats(batch, 2, 3, 4), np.array([2], np.int64), floats(16, 2), floats(16, 2)],
               interleaved=1, name="RotaryEmbedding interleaved")
    yield case("QAttention", [integers(0, 255, (batch, length, width), np.uint8),
                              integers(-127, 127, (width, 3 * width), np.int8), bias, number(0.02), number(0.01), None,
                              number(128, np.uint8), number(0, np.int8)], tolerance=1e-4, **common)


def quantized():
    a, b = integers(0, 255, (3, 6), np.uint8), integers(0, 255, (6, 4), np.uint8)
    u8, i8 = lambda v: number(v, np.uint8), lambda v: number(v, np.int8)
    yield case("MatMulIntegerToFloat", [a, b, number(0.05), number(0.02), u8(120), u8(130), floats(4)], tolerance=1e-5)
    yield case("MatMulIntegerToFloat", [a, integers(-128, 127, (6, 4), np.int8), number(0.05),
                                        np.abs(floats(4)), u8(120), integers(-9, 9, (4,), np.int8)],
               name="MatMulIntegerToFloat by columns")
    yield case("DynamicQuantizeMatMul", [floats(3, 6), b, number(0.02), u8(128), floats(4)])
    yield case("QGemm", [a, number(0.05), u8(120), b, number(0.02), u8(130), integers(-500, 500, (4,)), number(0.1), u8(100)],
               alpha=1.0, tolerance=0.02)
    yield case("QGemm", [a, number(0.05), u8(120), Constant(integers(0, 255, (4, 6), np.uint8)), number(0.02), u8(130)],
               transB=1, alpha=0.5, name="QGemm to floats")
    x, y = integers(0, 255, (2, 3, 5), np.uint8), integers(0, 255, (2, 3, 5), np.uint8)
    three = lambda v, z: (number(v), u8(z))
    yield case("QLinearAdd", [x, *three(0.1, 128), y, *three(0.05, 100), *three(0.15, 120)], tolerance=0.01)
    yield case("QLinearMul", [x, *three(0.1, 128), y, *three(0.05, 100), *three(0.5, 120)], tolerance=0.01)
    yield case("QLinearSigmoid", [x, *map(Constant, (*three(0.05, 128), *three(0.004, 0)))], tolerance=0.01)
    yield case("QLinearLeakyRelu", [x, *map(Constant, (*three(0.05, 128), *three(0.05, 100)))], alpha=0.2, tolerance=0.01)
    yield case("QLinearSoftmax", [x, *map(Constant, (*three(0.05, 128), *three(0.004, 0)))], axis=-1, opset=13,
               tolerance=0.01)
    image = integers(0, 255, (2, 3, 6, 5), np.uint8)
    yield case("QLinearAveragePool", [image, *three(0.05, 128), *three(0.04, 120)], kernel_shape=[3, 3], strides=[2, 2],
               tolerance=0.01)
    yield case("QLinearGlobalAveragePool", [image, *three(0.05, 128), *three(0.02, 120)], tolerance=0.01)
    yield case("QLinearGlobalAveragePool", [integers(0, 255, (2, 6, 5, 3), np.uint8), *three(0.05, 128), *three(0.02, 120)],
               channels_last=1, tolerance=0.01, name="QLinearGlobalAveragePool with the channels last")
    yield case("QLinearConcat", [*map(Constant, three(0.1, 120)), x, *map(Constant, three(0.1, 128)), y,
                                 *map(Constant, three(0.05, 100))], axis=1, tolerance=0.01)
    for bits in (4, 8):
        for zero in (False, True):
            blocks = 3
            shape = (4, blocks, 16 * bits // 8)
            zeros = [Constant(integers(0, 255, (4, (blocks * bits + 7) // 8), np.uint8))] if zero else []
            yield case("MatMulNBits", [floats(2, 5, 40), Constant(integers(0, 255, shape, np.uint8)),
                                       Constant(np.abs(floats(4 * blocks)) * np.float32(0.1)), *zeros], K=40, N=4, bits=bits,
                       block_size=16, tolerance=1e-4, name=f"MatMulNBits of {bits}" + (" with zeros" if zero else ""))
    places = np.array([[0, 4, -1], [3, -5, 9]], np.int64) # 9 is not in the table
    for bits, blocks in ((4, 3), (8, 2)):
        table, scale = Constant(integers(0, 255, (5, 24), np.uint8)), Constant(np.abs(floats(5, blocks)))
        zeros = Constant(integers(0, 255, (5, (blocks * bits + 7) // 8), np.uint8))
        for given in ([], [zeros]):
            yield case("GatherBlockQuantized", [table, places, scale, *given], bits=bits, block_size=16, quantize_axis=1,
                       gather_axis=0, name=f"GatherBlockQuantized of {bits} bits" + (" with zeros" if given else ""))
    for quantized, gathered in ((0, 1), (0, 0), (1, 0)):
        blocks = (2, 17) if quantized == 0 else (20, 2)
        table, zeros = ofFourBits(integers(0, 15, (20, 17))), ofFourBits(integers(0, 15, blocks))
        yield case("GatherBlockQuantized", [table, places, Constant(np.abs(floats(*blocks))), zeros], block_size=16,
                   quantize_axis=quantized, gather_axis=gathered,
                   name=f"GatherBlockQuantized of uint4, blocks along {quantized}, slices along {gathered}")
    hidden = 4
    weights = [Constant(integers(-128, 127, (1, 5, 4 * hidden), np.int8)), Constant(integers(-128, 127, (1, hidden, 4 * hidden), np.int8))]
    scales = [Constant(np.array([0.01], np.float32)), Constant(np.array([0], np.int8)),
              Constant(np.array([0.012], np.float32)), Constant(np.array([0], np.int8))]
    yield case("DynamicQuantizeLSTM", [floats(3, 2, 5), *weights, floats(1, 8 * hidden), None, floats(1, 2, hidden),
                                       floats(1, 2, hidden), None, *scales], ("y", "h", "c"), hidden_size=hidden,
               tolerance=0.02)


if __name__ == "__main__":
    write("fused", list(fused()))
    write("skipnorm", list(skipNorm()))
    write("attention", list(attention()))
    write("quantized", list(quantized()))
    write("ml", list(ml_cases.cases(case)))
