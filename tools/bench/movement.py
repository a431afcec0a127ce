#!/usr/bin/env python3
"""Kernels that move data, on one thread: GB/s of bytes read and written, beside ONNX Runtime, with the results compared.
Shapes are fixed, or all sizes are symbols (--symbolic). Run by `tools/dev bench --movement`."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f32": (TensorProto.FLOAT, numpy.float32), "f16": (TensorProto.FLOAT16, numpy.float16),
         "u8": (TensorProto.UINT8, numpy.uint8)}


class Graph:
    """A graph under construction: calls add nodes and return the names of their results."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def __getattr__(self, op):
        def add(*operands, **attributes):
            names = [x if isinstance(x, str) else self.constant(x) for x in operands]
            result = f"v{len(self.nodes)}"
            self.nodes.append(helper.make_node(op, names, [result], **attributes))
            return result
        return add


def resize(scale, **attributes):
    given = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", **attributes}
    return lambda g, x: g.Resize(x, "", numpy.array([1, 1, scale, scale], numpy.float32), **given)


def head(g, a, b, c, d):
    return g.Concat(resize(8)(g, a), resize(4)(g, b), resize(2)(g, c), d, axis=1)


def steps(g, x):
    part = [g.Slice(x, numpy.array([i, j]), numpy.array([1 << 40, 1 << 40]), numpy.array([2, 3]), numpy.array([2, 2]))
            for j in (0, 1) for i in (0, 1)]
    return g.Concat(*part, axis=1)


def pool(op, **attributes):
    return lambda g, x: getattr(g, op)(x, **attributes)


def perm(*order):
    return lambda g, x: g.Transpose(x, perm=order)


def transposedSum(g, x, y):
    return g.Relu(g.Add(g.Transpose(x, perm=[0, 3, 1, 2]), y))


def shuffle(g, x):
    split = g.Reshape(x, numpy.array([0, 2, -1, 56, 56]))
    return g.Reshape(g.Transpose(split, perm=[0, 2, 1, 3, 4]), numpy.array([0, -1, 56, 56]))


# Name, shapes of the inputs, graph.
KERNELS = [
    ("nearest resize x2, 64x80x80", [[1, 64, 80, 80]], resize(2)),
    ("nearest resize x3, 3x75x75", [[1, 3, 75, 75]], resize(3)),
    ("nearest resize x4, 33x40x40", [[1, 33, 40, 40]], resize(4)),
    ("detector head", [[1, 64, 20, 20], [1, 64, 40, 40], [1, 64, 80, 80], [1, 64, 160, 160]], head),
    ("max pool 3x3 s2 p1, 64x112x112", [[1, 64, 112, 112]],
     pool("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
    ("max pool 3x3 s2 p1, 63x111x113", [[1, 63, 111, 113]],
     pool("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
    ("max pool 2x2, 64x160x160", [[1, 64, 160, 160]], pool("MaxPool", kernel_shape=[2, 2], strides=[2, 2])),
    ("max pool 2x2, 3x225x225", [[8, 3, 225, 225]], pool("MaxPool", kernel_shape=[2, 2], strides=[2, 2])),
    ("max pool 5x5 s1 p2, 128x20x20", [[1, 128, 20, 20]],
     pool("MaxPool", kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2])),
    ("average pool 3x3 s1 p1, 64x56x56", [[1, 64, 56, 56]],
     pool("AveragePool", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])),
    ("average pool 2x2, 64x112x112", [[1, 64, 112, 112]], pool("AveragePool", kernel_shape=[2, 2], strides=[2, 2])),
    ("concat of 4 along the last axis, 6400x64", [[6400, 64]] * 4, lambda g, *x: g.Concat(*x, axis=1)),
    ("concat of 3 along the last axis, 6400x(1, 30, 77)", [[6400, 1], [6400, 30], [6400, 77]],
     lambda g, *x: g.Concat(*x, axis=1)),
    ("concat of 4 over channels, 64x56x56", [[1, 64, 56, 56]] * 4, lambda g, *x: g.Concat(*x, axis=1)),
    ("stack of 4 along the last axis, 100000", [[100000, 1]] * 4, lambda g, *x: g.Concat(*x, axis=1)),
    ("depth to space 2, 256x80x80", [[1, 256, 80, 80]], lambda g, x: g.DepthToSpace(x, blocksize=2)),
    ("space to depth 2, 64x160x160", [[1, 64, 160, 160]], lambda g, x: g.SpaceToDepth(x, blocksize=2)),
    ("steps of 2 in rows and columns + concat, 3x640x640", [[1, 3, 640, 640]], steps),
    ("slice with steps of 2, 1024x1024", [[1024, 1024]],
     lambda g, x: g.Slice(x, numpy.array([0]), numpy.array([1 << 40]), numpy.array([1]), numpy.array([2]))),
    ("flip of columns, 1024x1024", [[1024, 1024]],
     lambda g, x: g.Slice(x, numpy.array([-1]), numpy.array([-1 << 40]), numpy.array([1]), numpy.array([-1]))),
    ("pad by 1, 64x56x56", [[1, 64, 56, 56]], lambda g, x: g.Pad(x, numpy.array([0, 0, 1, 1, 0, 0, 1, 1]))),
    ("pad by reflection, 3x224x224", [[1, 3, 224, 224]],
     lambda g, x: g.Pad(x, numpy.array([0, 0, 3, 3, 0, 0, 3, 3]), mode="reflect")),
    ("roll of columns, 1024x1000", [[1024, 1000]],
     lambda g, x: g.Concat(g.Slice(x, numpy.array([300]), numpy.array([1 << 40]), numpy.array([1])),
                           g.Slice(x, numpy.array([0]), numpy.array([300]), numpy.array([1])), axis=1)),
    ("channel shuffle, 116x56x56", [[1, 116, 56, 56]], shuffle),
    ("transpose, 1024x1024", [[1024, 1024]], perm(1, 0)),
    ("NHWC to NCHW, 160x160x64", [[1, 160, 160, 64]], perm(0, 3, 1, 2)),
    ("NHWC to NCHW + add + relu, 160x160x64", [[1, 160, 160, 64], [1, 64, 160, 160]], transposedSum),
    ("NHWC to NCHW, 224x224x3", [[1, 224, 224, 3]], perm(0, 3, 1, 2)),
    ("NCHW to NHWC, 3x224x224", [[1, 3, 224, 224]], perm(0, 2, 3, 1)),
    ("heads b,s,h,d to b,h,s,d", [[8, 128, 12, 64]], perm(0, 2, 1, 3)),
    ("scale and shift of 3 channels, 224x224x3", [[1, 224, 224, 3], [3], [3]],
     lambda g, x, a, b: g.Add(g.Mul(x, a), b)),
    ("tile 1x4, 512x100", [[512, 100]], lambda g, x: g.Tile(x, numpy.array([1, 4]))),
    ("gather of rows, 5000 of 20000x256", [[20000, 256]],
     lambda g, x: g.Gather(x, numpy.random.default_rng(1).integers(0, 20000, 5000), axis=0)),
    ("sum over rows, 4096x512", [[4096, 512]],
     lambda g, x: g.ReduceSum(x, numpy.array([0]), keepdims=0)),
    ("mean over rows, 8x1000x96", [[8, 1000, 96]],
     lambda g, x: g.ReduceMean(x, axes=[1], keepdims=0)),
    ("maximum over channels, 64x56x56", [[1, 64, 56, 56]],
     lambda g, x: g.ReduceMax(x, axes=[1], keepdims=1)),
    ("sum over columns, 4096x512", [[4096, 512]], lambda g, x: g.ReduceSum(x, numpy.array([1]), keepdims=0)),
    ("bilinear resize x2, 64x80x80", [[1, 64, 80, 80]],
     resize(2, mode="linear", coordinate_transformation_mode="half_pixel")),
    ("bilinear resize to 320x320, 3x224x224", [[1, 3, 224, 224]],
     lambda g, x: g.Resize(x, "", "", numpy.array([1, 3, 320, 320]), mode="linear")),
    ("lower triangle, 1024x1024", [[1024, 1024]], lambda g, x: g.Trilu(x, upper=0)),
]


def modelOf(shapes, build, dtype, symbolic):
    graph = Graph()
    names = [f"x{i}" for i in range(len(shapes))]
    result = build(graph, *names)
    # Sizes that are equal share a name; 1 and small ones stay numbers, as exporters leave them.
    dims = [[f"n{size}" if symbolic and size > 8 else size for size in shape] for shape in shapes]
    made = helper.make_graph(graph.nodes, "movement",
                             [helper.make_tensor_value_info(n, TYPES[dtype][0], d) for n, d in zip(names, dims)],
                             [helper.make_tensor_value_info(result, TYPES[dtype][0], None)], graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def medianTime(run, seconds):
    run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


class Case:
    def __init__(self, folder, entry, options):
        self.name, shapes, build = entry
        self.options, self.folder = options, folder
        self.model = modelOf(shapes, build, options.dtype, options.symbolic)
        self.path = str(folder / "model.onnx")
        onnx.save(self.model, self.path)
        rng = numpy.random.default_rng(0)
        self.feeds = {f"x{i}": (rng.standard_normal(shape) * 50).astype(TYPES[options.dtype][1])
                      for i, shape in enumerate(shapes)}

        # Sizes come from the inputs: a name that sizes of the model share may be several symbols of the artifact.
        self.inputs = []
        for name, value in self.feeds.items():
            numpy.save(folder / f"{name}.npy", value)
            self.inputs.append(f"--input={name}=@{folder / name}.npy")

    def burin(self, verb, *arguments):
        return subprocess.run([self.options.burin, verb, self.path, *self.inputs, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def seconds(self):
        report = json.loads(self.burin("bench", "--threads=1", "--json", f"--min-time={self.options.seconds}"))
        measured = {entry["name"]: entry["type"] for entry in report["inputs"]}
        for name, value in self.feeds.items():
            if not measured[name].endswith(str(list(value.shape))):
                raise RuntimeError(f"{self.name}: {name} is {list(value.shape)}, but {measured[name]} was measured")
        return report["runs"][0]["median_us"] * 1e-6

    def result(self):
        output = self.model.graph.output[0].name
        self.burin("run", f"--output={output}=@{self.folder / 'y.npy'}")
        return numpy.load(self.folder / "y.npy")

    def measure(self):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(self.path, settings, providers=["CPUExecutionProvider"])
        expected = session.run(None, self.feeds)[0]
        moved = expected.nbytes + sum(x.nbytes for x in self.feeds.values())
        got = self.result()
        # ONNX Runtime computes the positions of a bilinear resize in f32, which moves results by up to 0.004 here.
        same = numpy.array_equal(got, expected) or numpy.allclose(got, expected, rtol=1e-5, atol=1e-2)
        peer = ours = math.inf
        for _ in range(2):
            peer = min(peer, medianTime(lambda: session.run(None, self.feeds), self.options.seconds))
            ours = min(ours, self.seconds())
        return moved, ours, peer, same


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="parts of names; default: all")
    parser.add_argument("--burin", default=".build/release/bin/burin")
    parser.add_argument("--dtype", default="f32", choices=TYPES)
    parser.add_argument("--symbolic", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    print(f"{'kernel (' + options.dtype + ')':52} {'GB/s':>7} {'ORT':>7} {'ORT / burin':>12}")
    ratios, wrong = [], 0
    for entry in KERNELS:
        if options.kernels and not any(part in entry[0] for part in options.kernels):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                moved, ours, peer, same = Case(pathlib.Path(folder), entry, options).measure()
            except subprocess.CalledProcessError as problem:
                print(f"{entry[0]:52} failed: {problem.stderr.strip().splitlines()[-1][:100]}")
                wrong += 1
                continue
            except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
                print(f"{entry[0]:52} ONNX Runtime has no such kernel")
                continue
        ratios.append(peer / ours)
        wrong += not same
        print(f"{entry[0]:52} {moved / ours / 1e9:7.1f} {moved / peer / 1e9:7.1f} {peer / ours:12.2f}"
              + ("" if same else "  WRONG"), flush=True)
    if ratios:
        print(f"{'geometric mean':52} {'':7} {'':7} {statistics.geometric_mean(ratios):12.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
