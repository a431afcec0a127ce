"""The peers of tools/bench/pages/movement.py: each runs a small ONNX model on one thread. `run` returns the result as an
array. A peer that has no such kernel throws when it is made."""
import importlib.metadata

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper


class OnnxRuntime:
    name = "onnxruntime"

    @staticmethod
    def version():
        return "ONNX Runtime " + onnxruntime.__version__

    def __init__(self, path, feeds):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        self.feeds = feeds

    def run(self):
        return self.session.run(None, self.feeds)[0]


class OpenVino:
    name = "openvino"

    @staticmethod
    def version():
        return "OpenVINO " + importlib.metadata.version("openvino")

    def __init__(self, path, feeds):
        import openvino
        from openvino._pyopenvino import InferRequest
        half = any(x.dtype == numpy.float16 for x in feeds.values())
        config = {"INFERENCE_PRECISION_HINT": "f16" if half else "f32", "PERFORMANCE_HINT": "LATENCY",
                  "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": "1"}
        core = openvino.Core()
        self.request = core.compile_model(core.read_model(str(path)), "CPU", config).create_infer_request()
        for name, array in feeds.items():
            self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        self.infer = InferRequest.infer  # bypasses the Python wrapper that converts inputs

    def run(self):
        self.infer(self.request, {}, True, False)
        return self.request.get_output_tensor(0).data


class Torch:
    """Eager PyTorch: the calls that a user would write for the ops of the graph, with a result in dense memory."""
    name = "torch"

    @staticmethod
    def version():
        return "PyTorch " + importlib.metadata.version("torch")

    def __init__(self, path, feeds):
        import torch
        torch.set_num_threads(1)
        self.torch = torch
        graph = onnx.load(str(path)).graph
        self.feeds = {name: torch.from_numpy(x) for name, x in feeds.items()}
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.steps = [self.step(node) for node in graph.node]
        self.result = graph.output[0].name

    def run(self):
        with self.torch.inference_mode():
            values = dict(self.feeds)
            for output, operands, call in self.steps:
                values[output] = call(*[values[name] for name in operands])
            return values[self.result].contiguous().numpy()

    def step(self, node):
        """(name of the result, names of the operands that are tensors, function of these)"""
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        numbers = [self.constants.get(name) for name in node.input]
        call = getattr(self, node.op_type)(attributes, numbers)
        return node.output[0], [name for name in node.input if name and name not in self.constants], call

    def Resize(self, attributes, numbers):
        interpolate = self.torch.nn.functional.interpolate
        given = ({"scale_factor": [float(s) for s in numbers[2][2:]]} if len(numbers) < 4
                 else {"size": [int(n) for n in numbers[3][2:]]})
        if attributes["mode"] == b"nearest":
            return lambda x: interpolate(x, mode="nearest", **given)
        return lambda x: interpolate(x, mode="bilinear", align_corners=False, **given)

    def Concat(self, attributes, _):
        return lambda *xs: self.torch.cat(xs, attributes["axis"])

    def MaxPool(self, attributes, _):
        pool, pads = self.torch.nn.functional.max_pool2d, attributes.get("pads", [0, 0])
        return lambda x: pool(x, attributes["kernel_shape"], attributes["strides"], pads[:2])

    def AveragePool(self, attributes, _):
        pool, pads = self.torch.nn.functional.avg_pool2d, attributes.get("pads", [0, 0])
        return lambda x: pool(x, attributes["kernel_shape"], attributes["strides"], pads[:2], count_include_pad=False)

    def DepthToSpace(self, attributes, _):
        block = attributes["blocksize"]

        def call(x):
            n, c, h, w = x.shape
            apart = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
            return apart.reshape(n, c // block**2, h * block, w * block)
        return call

    def SpaceToDepth(self, attributes, _):
        block = attributes["blocksize"]

        def call(x):
            n, c, h, w = x.shape
            apart = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
            return apart.reshape(n, c * block**2, h // block, w // block)
        return call

    def Slice(self, _, numbers):
        starts, ends, axes = (x.tolist() for x in numbers[1:4])
        steps = numbers[4].tolist() if len(numbers) > 4 else [1] * len(starts)

        def call(x):
            for start, end, axis, step in zip(starts, ends, axes, steps):
                if step < 0:
                    x = x.flip(axis)
                else:
                    x = x[(slice(None),) * (axis % x.dim()) + (slice(start, end, step),)]
            return x
        return call

    def Pad(self, attributes, numbers):
        pads = numbers[1].tolist()
        rank, pad = len(pads) // 2, self.torch.nn.functional.pad
        mode = attributes.get("mode", b"constant").decode()
        first = 0 if mode == "constant" else 2  # reflection takes the padded dimensions alone
        sides = [pads[end * rank + axis] for axis in reversed(range(first, rank)) for end in (0, 1)]
        return lambda x: pad(x, sides, mode=mode)

    def Reshape(self, _, numbers):
        shape = numbers[1].tolist()
        return lambda x: x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape)])

    def Transpose(self, attributes, _):
        return lambda x: x.permute(attributes["perm"])

    def Relu(self, *_):
        return self.torch.relu

    def Add(self, *_):
        return self.torch.add

    def Mul(self, *_):
        return self.torch.mul

    def Tile(self, _, numbers):
        return lambda x: x.repeat(numbers[1].tolist())

    def Gather(self, attributes, numbers):
        index = self.torch.from_numpy(numbers[1].copy())
        return lambda x: x.index_select(attributes["axis"], index)

    def ReduceSum(self, attributes, numbers):
        return lambda x: x.sum(numbers[1].tolist(), keepdim=bool(attributes["keepdims"]))

    def ReduceMean(self, attributes, _):
        return lambda x: x.mean(attributes["axes"], keepdim=bool(attributes["keepdims"]))

    def ReduceMax(self, attributes, _):
        return lambda x: x.amax(attributes["axes"], keepdim=bool(attributes["keepdims"]))

    def Trilu(self, *_):
        return self.torch.tril


PEERS = {peer.name: peer for peer in (OnnxRuntime, OpenVino, Torch)}
