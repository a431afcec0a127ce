#!/usr/bin/env python3
"""Kernels that move data, on one thread: GB/s of bytes read and written, beside ONNX Runtime, OpenVINO and PyTorch, with
the results compared, once with fixed sizes and once with every size a symbol, by turns. Run by `tools/dev bench
--movement`; `--docs PAGE` writes the table as a page."""
import argparse
import dataclasses
import datetime
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import movement_peers

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


# Name, shapes of the inputs, graph, and the type of the elements where it is not f32.
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
    ("nearest resize x2, 8x64x40x40", [[8, 64, 40, 40]], resize(2)),
    ("max pool 3x3 s2 p1, 8x64x112x112", [[8, 64, 112, 112]],
     pool("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
    ("average pool 3x3 s1 p1, 8x64x28x28", [[8, 64, 28, 28]],
     pool("AveragePool", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])),
    ("concat of 4 over channels, 8x64x28x28", [[8, 64, 28, 28]] * 4, lambda g, *x: g.Concat(*x, axis=1)),
    ("depth to space 2, 8x256x40x40", [[8, 256, 40, 40]], lambda g, x: g.DepthToSpace(x, blocksize=2)),
    ("NHWC to NCHW, 8x80x80x64", [[8, 80, 80, 64]], perm(0, 3, 1, 2)),
    ("nearest resize x2, 64x80x80, f16", [[1, 64, 80, 80]], resize(2), "f16"),
    ("max pool 2x2, 64x160x160, f16", [[1, 64, 160, 160]],
     pool("MaxPool", kernel_shape=[2, 2], strides=[2, 2]), "f16"),
    ("concat of 4 along the last axis, 6400x64, f16", [[6400, 64]] * 4, lambda g, *x: g.Concat(*x, axis=1), "f16"),
    ("transpose, 1024x1024, f16", [[1024, 1024]], perm(1, 0), "f16"),
    ("NHWC to NCHW + add + relu, 160x160x64, f16", [[1, 160, 160, 64], [1, 64, 160, 160]], transposedSum, "f16"),
    ("heads b,s,h,d to b,h,s,d, f16", [[8, 128, 12, 64]], perm(0, 2, 1, 3), "f16"),
    ("nearest resize x2, 64x80x80, u8", [[1, 64, 80, 80]], resize(2), "u8"),
    ("max pool 3x3 s2 p1, 64x112x112, u8", [[1, 64, 112, 112]],
     pool("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), "u8"),
    ("concat of 4 along the last axis, 6400x64, u8", [[6400, 64]] * 4, lambda g, *x: g.Concat(*x, axis=1), "u8"),
    ("flip of columns, 1024x1024, u8", [[1024, 1024]],
     lambda g, x: g.Slice(x, numpy.array([-1]), numpy.array([-1 << 40]), numpy.array([1]), numpy.array([-1])), "u8"),
    ("NHWC to NCHW, 224x224x3, u8", [[1, 224, 224, 3]], perm(0, 3, 1, 2), "u8"),
    ("transpose, 1024x1024, u8", [[1024, 1024]], perm(1, 0), "u8"),
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


FORMS = ("fixed", "symbolic")


@dataclasses.dataclass
class Row:
    """What was measured of one kernel, in seconds. Peers are those of the fixed sizes, and ONNX Runtime with symbols."""
    name: str
    bytes: int = 0
    ours: dict = dataclasses.field(default_factory=dict)   # by form
    peers: dict = dataclasses.field(default_factory=dict)  # by form and name
    wrong: list = dataclasses.field(default_factory=list)  # forms, or peers with another result than ONNX Runtime's

    def rate(self, form):
        return self.bytes / self.ours[form] / 1e9

    def ratio(self, form, peer):
        """None if the peer has no such kernel."""
        seconds = self.peers.get((form, peer))
        return seconds and seconds / self.ours[form]

    def overFastest(self):
        """The time of the fastest peer with fixed sizes, over burin's; None without any."""
        return min((r for peer in movement_peers.PEERS if (r := self.ratio("fixed", peer))), default=None)

    def cost(self):
        return self.ours["symbolic"] / self.ours["fixed"]


class Case:
    """One kernel in one form."""

    def __init__(self, folder, entry, form, options):
        self.name, shapes, build, *own = entry
        dtype = options.dtype or (own[0] if own else "f32")
        self.options, self.folder = options, folder / form
        self.folder.mkdir()
        self.model = modelOf(shapes, build, dtype, form == "symbolic")
        self.path = self.folder / "model.onnx"
        onnx.save(self.model, str(self.path))
        rng = numpy.random.default_rng(0)
        self.feeds = {f"x{i}": self.elements(rng, shape, TYPES[dtype][1]) for i, shape in enumerate(shapes)}
        # Sizes come from the inputs: a name that sizes of the model share may be several symbols of the artifact.
        self.inputs = []
        for name, value in self.feeds.items():
            numpy.save(self.folder / f"{name}.npy", value)
            self.inputs.append(f"--input={name}=@{self.folder / name}.npy")
        self.plate = self.folder / "model.plate"
        self.call("compile", self.path, "-o", self.plate)
        wanted = options.peers if form == "fixed" else [p for p in options.peers if p == "onnxruntime"]
        self.peers = {name: peer for name in wanted if (peer := self.peer(name))}

    @staticmethod
    def elements(rng, shape, dtype):
        if dtype == numpy.uint8:
            return rng.integers(0, 256, shape, dtype=dtype)
        return (rng.standard_normal(shape) * 50).astype(dtype)

    def peer(self, name):
        """None if it lacks the kernel: all throw exceptions of their own, some only when they run."""
        try:
            peer = movement_peers.PEERS[name](self.path, self.feeds)
            peer.run()
            return peer
        except ImportError:
            raise
        except Exception as problem:  # pylint: disable=broad-except
            if self.options.verbose:
                print(f"{self.name}: {name}: {str(problem).splitlines()[0][:200]}", file=sys.stderr)
            return None

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

    def result(self):
        output = self.model.graph.output[0].name
        self.call("run", self.plate, *self.inputs, f"--output={output}=@{self.folder / 'y.npy'}")
        return numpy.load(self.folder / "y.npy")


def areEqual(got, expected):
    # ONNX Runtime computes the positions of a bilinear resize in f32, which moves results by up to 0.004 here.
    return got.shape == expected.shape and (numpy.array_equal(got, expected) or
                                            numpy.allclose(got, expected, rtol=1e-5, atol=1e-2))


def measure(entry, options):
    """A Row; the least of the medians of some turns."""
    with tempfile.TemporaryDirectory() as folder:
        cases = {form: Case(pathlib.Path(folder), entry, form, options) for form in FORMS}
        row = Row(entry[0])
        # Results of burin and of other peers are compared with those of the first peer that has the kernel.
        peers = cases["fixed"].peers
        expected = next((numpy.array(peer.run()) for peer in peers.values()), None)
        for form, case in cases.items():
            got = case.result()
            row.bytes = got.nbytes + sum(x.nbytes for x in case.feeds.values())
            if expected is not None and not areEqual(got, expected):
                row.wrong.append(form)
        row.wrong += [name for name, peer in peers.items() if not areEqual(numpy.array(peer.run()), expected)]
        for _ in range(options.turns):
            for form, case in cases.items():
                for name, peer in case.peers.items():
                    seconds = medianTime(peer.run, options.seconds)
                    row.peers[form, name] = min(row.peers.get((form, name), math.inf), seconds)
                row.ours[form] = min(row.ours.get(form, math.inf), case.seconds())
        return row


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "an unknown processor"


COLUMNS = [("fixed", "onnxruntime", "ORT"), ("fixed", "openvino", "OV"), ("fixed", "torch", "PyTorch"),
           ("symbolic", "onnxruntime", "ORT")]


def shown(ratio):
    return f"{ratio:.2f}" if ratio else "–"


def means(rows):
    """The geometric means of the ratios of each column, and of the cost of symbols."""
    result = []
    for form, peer, _ in COLUMNS:
        ratios = [r for row in rows if (r := row.ratio(form, peer))]
        result.append(statistics.geometric_mean(ratios) if ratios else None)
    return result, statistics.geometric_mean(row.cost() for row in rows)


def page(rows, options):
    lines = ["# Kernels that move data", "",
             f"Written by `tools/dev bench --movement --docs PAGE`. One thread of {processor()}, f32 if not named "
             f"otherwise, {datetime.date.today()}: GB/s of bytes read and written, and the ratios of the times of "
             f"{', '.join(options.titles)} to burin's (more than 1: burin is faster; –: no such kernel). *Symbolic* is "
             "the same graph with a name for every size above 8. Each figure is the least of "
             f"{options.turns} medians, taken by turns." + (f" {options.note}" if options.note else ""), "",
             "| kernel | fixed GB/s | ONNX Runtime | OpenVINO | PyTorch | symbolic GB/s | ONNX Runtime | "
             "symbolic / fixed time |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        ratios = [shown(row.ratio(form, peer)) for form, peer, _ in COLUMNS]
        lines.append(f"| {row.name} | {row.rate('fixed'):.0f} | {' | '.join(ratios[:3])} | {row.rate('symbolic'):.0f} "
                     f"| {ratios[3]} | {row.cost():.2f} |")
    ratios, cost = means(rows)
    slow = [row.name for row in rows if (r := row.overFastest()) and r < 1.2]
    lines += ["", f"Geometric means: {shown(ratios[0])} × ONNX Runtime, {shown(ratios[1])} × OpenVINO and "
              f"{shown(ratios[2])} × PyTorch with fixed sizes, {shown(ratios[3])} × ONNX Runtime with symbolic ones; "
              f"symbolic / fixed {cost:.2f}. Below 1.2 × the fastest peer: {len(slow)} of {len(rows)}"
              + (f" ({'; '.join(slow)})." if slow else "."), ""]
    options.docs.parent.mkdir(parents=True, exist_ok=True)
    options.docs.write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="parts of names; default: all")
    parser.add_argument("--burin", default=".build/release/bin/burin")
    parser.add_argument("--dtype", choices=TYPES, help="of all kernels, instead of their own")
    parser.add_argument("--peers", default=",".join(movement_peers.PEERS), type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=0.2, help="of each figure in each turn")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--docs", type=pathlib.Path, help="write the table there")
    parser.add_argument("--note", help="a sentence for the page")
    parser.add_argument("--verbose", action="store_true", help="say why a peer has no figure")
    options = parser.parse_args()
    options.titles = [movement_peers.PEERS[name].version() for name in options.peers]
    print(f"{'kernel':52} {'GB/s':>7} {'/ ORT':>7} {'/ OV':>7} {'/ torch':>8} {'symbols':>9} {'/ ORT':>7} {'/ fixed':>8}")
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
        rows.append(row)
        failed += any(name in FORMS for name in row.wrong)
        ratios = [shown(row.ratio(form, peer)) for form, peer, _ in COLUMNS]
        print(f"{row.name:52} {row.rate('fixed'):7.1f} {ratios[0]:>7} {ratios[1]:>7} {ratios[2]:>8} "
              f"{row.rate('symbolic'):9.1f} {ratios[3]:>7} {row.cost():8.2f}"
              + (f"  OTHER RESULT: {', '.join(row.wrong)}" if row.wrong else ""), flush=True)
    if rows:
        ratios, cost = means(rows)
        ratios = [shown(r) for r in ratios]
        print(f"{'geometric means':52} {'':7} {ratios[0]:>7} {ratios[1]:>7} {ratios[2]:>8} {'':9} {ratios[3]:>7} "
              f"{cost:8.2f}")
        if options.docs:
            page(rows, options)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
