#!/usr/bin/env python3
"""Kernels that move data, on one thread: GB/s of bytes read and written, beside ONNX Runtime, with the results compared,
once with fixed sizes and once with every size a symbol, by turns. Run by `tools/dev bench --movement`; `--docs PAGE`
writes the table as a page."""
import argparse
import dataclasses
import datetime
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


@dataclasses.dataclass
class Row:
    """What was measured of one kernel, in seconds."""
    name: str
    bytes: int
    ours: dict  # by form
    peer: dict
    wrong: bool = False

    def rate(self, form):
        return self.bytes / self.ours[form] / 1e9

    def ratio(self, form):
        return self.peer[form] / self.ours[form]

    def cost(self):
        return self.ours["symbolic"] / self.ours["fixed"]


FORMS = ("fixed", "symbolic")


class Case:
    """One kernel in one form."""

    def __init__(self, folder, entry, form, options):
        self.name, shapes, build = entry
        self.options, self.folder = options, folder / form
        self.folder.mkdir()
        self.model = modelOf(shapes, build, options.dtype, form == "symbolic")
        self.path = str(self.folder / "model.onnx")
        onnx.save(self.model, self.path)
        rng = numpy.random.default_rng(0)
        self.feeds = {f"x{i}": (rng.standard_normal(shape) * 50).astype(TYPES[options.dtype][1])
                      for i, shape in enumerate(shapes)}
        # Sizes come from the inputs: a name that sizes of the model share may be several symbols of the artifact.
        self.inputs = []
        for name, value in self.feeds.items():
            numpy.save(self.folder / f"{name}.npy", value)
            self.inputs.append(f"--input={name}=@{self.folder / name}.npy")
        self.plate = self.folder / "model.plate"
        self.call("compile", self.path, "-o", self.plate)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(self.path, settings, providers=["CPUExecutionProvider"])

    def call(self, *arguments):
        return subprocess.run([str(x) for x in (self.options.burin, *arguments)], check=True, capture_output=True,
                              text=True).stdout

    def seconds(self):
        report = json.loads(self.call("bench", self.plate, *self.inputs, "--threads=1", "--json",
                                      f"--min-time={self.options.seconds}"))
        measured = {entry["name"]: entry["type"] for entry in report["inputs"]}
        for name, value in self.feeds.items():
            if not measured[name].endswith(str(list(value.shape))):
                raise RuntimeError(f"{self.name}: {name} is {list(value.shape)}, but {measured[name]} was measured")
        return report["runs"][0]["median_us"] * 1e-6

    def peerSeconds(self):
        return medianTime(lambda: self.session.run(None, self.feeds), self.options.seconds)

    def isRight(self):
        """Whether the result is ONNX Runtime's; the bytes that are read and written."""
        output = self.model.graph.output[0].name
        self.call("run", self.plate, *self.inputs, f"--output={output}=@{self.folder / 'y.npy'}")
        got, expected = numpy.load(self.folder / "y.npy"), self.session.run(None, self.feeds)[0]
        # ONNX Runtime computes the positions of a bilinear resize in f32, which moves results by up to 0.004 here.
        same = numpy.array_equal(got, expected) or numpy.allclose(got, expected, rtol=1e-5, atol=1e-2)
        return same, expected.nbytes + sum(x.nbytes for x in self.feeds.values())


def measure(entry, options):
    """A Row; the least of the medians of some turns."""
    with tempfile.TemporaryDirectory() as folder:
        cases = {form: Case(pathlib.Path(folder), entry, form, options) for form in FORMS}
        checks = [case.isRight() for case in cases.values()]
        row = Row(entry[0], checks[0][1], dict.fromkeys(FORMS, math.inf), dict.fromkeys(FORMS, math.inf),
                  not all(same for same, _ in checks))
        for _ in range(options.turns):
            for form, case in cases.items():
                row.peer[form] = min(row.peer[form], case.peerSeconds())
                row.ours[form] = min(row.ours[form], case.seconds())
        return row


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "an unknown processor"


def page(rows, options):
    lines = ["# Kernels that move data", "",
             f"Written by `tools/dev bench --movement --docs PAGE`. One thread of {processor()}, {options.dtype}, "
             f"{datetime.date.today()}: GB/s of bytes read and written, with the ratio of ONNX Runtime "
             f"{onnxruntime.__version__}'s time to burin's behind it (more than 1: burin is faster). *Symbolic* is the "
             f"same graph with a name for every size above 8. Each figure is the least of {options.turns} medians, "
             "taken by turns." + (f" {options.note}" if options.note else ""), "",
             "| kernel | fixed GB/s | ratio | symbolic GB/s | ratio | symbolic / fixed time |",
             "|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(f"| {row.name} | {row.rate('fixed'):.0f} | {row.ratio('fixed'):.2f} | {row.rate('symbolic'):.0f} "
                     f"| {row.ratio('symbolic'):.2f} | {row.cost():.2f} |")
    below = {form: [row.name for row in rows if row.ratio(form) < 1.2] for form in FORMS}
    means = {form: statistics.geometric_mean(row.ratio(form) for row in rows) for form in FORMS}
    lines += ["", f"Geometric means: {means['fixed']:.2f} × ONNX Runtime with fixed sizes, {means['symbolic']:.2f} × "
              f"with symbolic ones; symbolic / fixed {statistics.geometric_mean(row.cost() for row in rows):.2f}. Below "
              f"1.2 × ONNX Runtime: {len(below['fixed'])} of {len(rows)} with fixed sizes, {len(below['symbolic'])} "
              "with symbolic ones.", ""]
    options.docs.parent.mkdir(parents=True, exist_ok=True)
    options.docs.write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="parts of names; default: all")
    parser.add_argument("--burin", default=".build/release/bin/burin")
    parser.add_argument("--dtype", default="f32", choices=TYPES)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each figure in each turn")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--docs", type=pathlib.Path, help="write the table there")
    parser.add_argument("--note", help="a sentence for the page")
    options = parser.parse_args()
    print(f"{'kernel (' + options.dtype + ')':52} {'GB/s':>7} {'/ ORT':>7} {'symbols':>9} {'/ ORT':>7} {'/ fixed':>8}")
    rows, failed = [], 0
    for entry in KERNELS:
        if options.kernels and not any(part in entry[0] for part in options.kernels):
            continue
        try:
            row = measure(entry, options)
        except subprocess.CalledProcessError as problem:
            print(f"{entry[0]:52} failed: {problem.stderr.strip().splitlines()[-1][:100]}")
            failed += 1
            continue
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
            print(f"{entry[0]:52} ONNX Runtime has no such kernel")
            continue
        rows.append(row)
        failed += row.wrong
        print(f"{row.name:52} {row.rate('fixed'):7.1f} {row.ratio('fixed'):7.2f} {row.rate('symbolic'):9.1f} "
              f"{row.ratio('symbolic'):7.2f} {row.cost():8.2f}" + ("  WRONG" if row.wrong else ""), flush=True)
    if rows:
        means = [statistics.geometric_mean(values) for values in (
            [row.ratio("fixed") for row in rows], [row.ratio("symbolic") for row in rows],
            [row.cost() for row in rows])]
        print(f"{'geometric means':52} {'':7} {means[0]:7.2f} {'':9} {means[1]:7.2f} {means[2]:8.2f}")
        if options.docs:
            page(rows, options)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
