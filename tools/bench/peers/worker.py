"""A peer that runs workloads on request, one command per line on stdin, one answer per line on stdout:

  load NAME     prepares the workload                           ok
  run WARM N    WARM calls, then N timed ones                    nanoseconds for the N calls
  output        runs once, writes NAME.CONTESTANT.I.npy          ok
  settings      what this peer is and how it is set              text

A command that fails answers "error: …", and the worker continues."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest.mock

import numpy
import workloads


def onnxFile(workload, folder):
    """Returns the path of the ONNX model, which PyTorch exports once."""
    import torch
    return workloads.cached(workload, folder, "onnx", lambda path: torch.onnx.export(
        workloads.loadModel(workload, folder), tuple(workloads.loadInputs(workload, folder)), path,
        input_names=workloads.inputNames(workload, folder), dynamo=True, optimize=True, external_data=False,
        verbose=False))


class Torch:
    """PyTorch, called from Python."""

    def __init__(self, threads):
        import torch
        self.torch, self.threads = torch, threads
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)

    def prepare(self, workload, folder):
        return workloads.loadModel(workload, folder)

    def load(self, workload, folder):
        torch = self.torch
        self.call = None
        with torch.inference_mode():
            self.inputs = self.inputsOf(workload, folder)
            self.call = self.prepare(workload, folder)

    def inputsOf(self, workload, folder):
        inputs = workloads.loadInputs(workload, folder)
        if workloads.hasConvolutions(workload, folder):
            return [x.contiguous(memory_format=self.torch.channels_last) for x in inputs]
        return inputs

    def run(self, count):
        call, inputs = self.call, self.inputs
        with self.torch.inference_mode():
            start = time.perf_counter_ns()
            for _ in range(count):
                call(*inputs)
            return time.perf_counter_ns() - start

    def outputs(self):
        with self.torch.inference_mode():
            result = self.call(*self.inputs)
        return [y.numpy() for y in (result if isinstance(result, (tuple, list)) else [result])]


class TorchEager(Torch):
    def settings(self):
        return f"PyTorch {self.torch.__version__}, eager, inference_mode, channels_last where there are convolutions"

    def prepare(self, workload, folder):
        return workloads.loadModel(workload, folder).to(memory_format=self.torch.channels_last)


class TorchScript(Torch):
    def settings(self):
        return f"PyTorch {self.torch.__version__}, jit.trace, freeze, optimize_for_inference"

    def prepare(self, workload, folder):
        jit = self.torch.jit
        traced = jit.trace(workloads.loadModel(workload, folder), tuple(self.inputs), check_trace=False)
        call = jit.optimize_for_inference(jit.freeze(traced.eval()))
        for _ in range(3):  # its profiling executor optimises during the first calls
            call(*self.inputs)
        return call


class Inductor(Torch):
    """Compiled ahead of time (AOTInductor), which has the least overhead per call; once per number of threads, as the
    packed layout of weights depends on it."""

    OPTIONS = {"freezing": True, "max_autotune": True}

    def settings(self):
        return f"PyTorch {self.torch.__version__}, torch.export and AOTInductor with {json.dumps(self.OPTIONS)}"

    def prepare(self, workload, folder):
        return self.torch._inductor.aoti_load_package(self.package(workload, folder))

    def package(self, workload, folder):
        from torch.utils.cpp_extension import TORCH_LIB_PATH
        torch = self.torch

        def make(path):
            # The linker searches Python's own library folder first, which may hold Debian's older libtorch.
            sysconfig.get_config_vars()["LIBDIR"] = TORCH_LIB_PATH
            program = torch.export.export(workloads.loadModel(workload, folder), tuple(self.inputs))
            torch._inductor.aoti_compile_and_package(program, package_path=path, inductor_configs=self.OPTIONS)

        return workloads.cached(workload, folder, f"{self.threads}.pt2", make, self.settings())

    def make(self, workload, folder):
        with self.torch.inference_mode():
            self.inputs = self.inputsOf(workload, folder)
            self.package(workload, folder)


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime
        self.ort = onnxruntime
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        self.options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL

    def settings(self):
        return (f"ONNX Runtime {self.ort.__version__}, CPU, all graph optimisations, sequential, intra-op threads as "
                "given (spinning as by default), inputs and outputs bound")

    def make(self, workload, folder):
        onnxFile(workload, folder)

    def load(self, workload, folder):
        self.session = None
        names = workloads.inputNames(workload, folder)
        arrays = [x.numpy() for x in workloads.loadInputs(workload, folder)]
        session = self.ort.InferenceSession(
            str(onnxFile(workload, folder)), self.options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, array in zip(names, arrays):
            binding.bind_ortvalue_input(name, self.ort.OrtValue.ortvalue_from_numpy(array))
        for output in session.get_outputs():
            binding.bind_output(output.name)
        session.run_with_iobinding(binding)
        for output, value in zip(session.get_outputs(), binding.get_outputs()):
            binding.bind_ortvalue_output(output.name, value)
        self.session, self.binding = session, binding

    def run(self, count):
        call, binding = self.session._sess.run_with_iobinding, self.binding._iobinding
        start = time.perf_counter_ns()
        for _ in range(count):
            call(binding, None)
        return time.perf_counter_ns() - start

    def outputs(self):
        self.session.run_with_iobinding(self.binding)
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    def __init__(self, threads):
        import openvino
        self.openvino = openvino
        self.core = openvino.Core()
        self.config = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
                       "INFERENCE_NUM_THREADS": str(threads)}

    def settings(self):
        return f"OpenVINO {self.openvino.__version__}, {json.dumps(self.config)}"

    def load(self, workload, folder):
        self.request = None
        model = self.core.compile_model(self.core.read_model(onnxFile(workload, folder)), "CPU", self.config)
        self.request = model.create_infer_request()
        self.arrays = [x.numpy() for x in workloads.loadInputs(workload, folder)]
        for name, array in zip(workloads.inputNames(workload, folder), self.arrays):
            self.request.set_tensor(name, self.openvino.Tensor(array, shared_memory=True))
        self.count = len(model.outputs)

    def run(self, count):
        from openvino._pyopenvino import InferRequest
        request = self.request
        call = InferRequest.infer  # bypasses the Python wrapper that converts inputs
        start = time.perf_counter_ns()
        for _ in range(count):
            call(request, {}, True, False)
        return time.perf_counter_ns() - start

    def outputs(self):
        self.request.infer()
        return [self.request.get_output_tensor(i).data for i in range(self.count)]


class LibTorch(Torch):
    """Only writes the TorchScript archives that burin-bench-libtorch runs."""

    def make(self, workload, folder):
        torch = self.torch

        def attention(q, k, v):  # in operations that libtorch 1.13 has
            return torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, -1) @ v

        def trace(path):
            functions = torch.nn.functional
            with torch.no_grad(), unittest.mock.patch.object(functions, "scaled_dot_product_attention", attention):
                torch.jit.trace(workloads.loadModel(workload, folder), tuple(workloads.loadInputs(workload, folder)),
                                check_trace=False).save(path)

        workloads.cached(workload, folder, "torchscript", trace, torch.__version__)


class Iree:
    """Runs modules that were compiled beforehand. If that failed or took too long, NAME.vmfb.problem has the reason."""

    FLAGS = ["--iree-opt-level=O3", "--iree-opt-data-tiling", "--iree-llvmcpu-target-cpu=host",
             "--iree-llvmcpu-enable-ukernels=all", "--iree-llvmcpu-stack-allocation-limit=262144"]
    CHANNELS_LAST = ("--iree-preprocessing-pass-pipeline="
                     "builtin.module(util.func(iree-preprocessing-convert-conv-to-channels-last))")
    LIMIT_SECONDS = 120

    def __init__(self, threads):
        import iree.runtime
        self.runtime = runtime = iree.runtime
        if threads > 1:
            runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        self.device = runtime.get_device("local-sync" if threads == 1 else "local-task")

    def settings(self):
        return (f"IREE {importlib.metadata.version('iree-base-compiler')}, llvm-cpu, {' '.join(self.FLAGS)}, "
                "convolutions as they are or channels-last (iree-preprocessing-convert-conv-to-channels-last), "
                "whichever is faster; 1 thread: local-sync, more: local-task with as many workers; models that take "
                f"more than {self.LIMIT_SECONDS} s to compile are left out")

    def make(self, workload, folder):
        model = onnxFile(workload, folder)
        return workloads.cached(workload, folder, "vmfb", lambda path: self.compile(workload, folder, model, path),
                                self.settings())

    def compile(self, workload, folder, model, path):
        from iree.compiler.tools import binaries
        problem = ""
        end = time.monotonic() + self.LIMIT_SECONDS
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            imported, plain, last = (os.path.join(scratch, name) for name in ("model.mlir", "plain", "last"))
            command = [binaries.find_tool("iree-compile"), imported, "--iree-hal-target-device=local",
                       "--iree-hal-local-target-device-backends=llvm-cpu", *self.FLAGS]
            try:
                runUntil(end, sys.executable, "-m", "iree.compiler.tools.import_onnx", "--large-model", model,
                         "-o", imported)
                runUntil(end, *command, "-o", plain)
                fastest = plain
                if workloads.hasConvolutions(workload, folder):
                    runUntil(end, *command, self.CHANNELS_LAST, "-o", last)
                    fastest = min(plain, last, key=lambda made: self.nanoseconds(workload, folder, made))
                os.replace(fastest, path)
            except subprocess.TimeoutExpired:
                problem = f"takes more than {self.LIMIT_SECONDS} s to compile"
            except subprocess.CalledProcessError as error:
                problem = f"does not compile: {firstError(error.stderr)}"
        pathlib.Path(path + ".problem").write_text(problem)

    def load(self, workload, folder):
        path = self.make(workload, folder)
        problem = pathlib.Path(path + ".problem").read_text()
        if problem:
            raise RuntimeError(problem)
        self.open(workload, folder, path)

    def open(self, workload, folder, path):
        runtime = self.runtime
        self.context = self.inputs = None
        instance = runtime.VmInstance()
        module = runtime.VmModule.mmap(instance, path)
        self.context = runtime.VmContext(instance, [runtime.create_hal_module(instance, self.device), module])
        self.function = module.lookup_function("main_graph")
        self.arrays = [runtime.asdevicearray(self.device, x.numpy()) for x in workloads.loadInputs(workload, folder)]
        self.inputs = runtime.VmVariantList(len(self.arrays))
        for array in self.arrays:
            self.inputs.push_ref(array._buffer_view)

    def nanoseconds(self, workload, folder, path):
        self.open(workload, folder, path)
        return min(self.run(1) for _ in range(3))

    def run(self, count):
        makeList = self.runtime.VmVariantList
        # Bypasses the wrapper that converts inputs.
        call, function, inputs = self.context.invoke, self.function, self.inputs
        start = time.perf_counter_ns()
        for _ in range(count):
            call(function, inputs, makeList(1))
        return time.perf_counter_ns() - start

    def outputs(self):
        runtime = self.runtime
        results = runtime.VmVariantList(1)
        self.context.invoke(self.function, self.inputs, results)
        views = [results.get_as_object(i, runtime.HalBufferView) for i in range(len(results))]
        return [runtime.DeviceArray(self.device, view, implicit_host_transfer=True).to_host() for view in views]


def runUntil(end, *command):
    subprocess.run(command, check=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                   timeout=max(0.1, end - time.monotonic()))


def firstError(text):
    lines = [line.partition("error: ")[2] for line in text.splitlines() if "error: " in line]
    return (lines or text.splitlines()[-1:] or ["without a word"])[0]


class Reference(Torch):
    """PyTorch in f64."""

    def settings(self):
        return f"PyTorch {self.torch.__version__} in f64"

    def load(self, workload, folder):
        wide = lambda x: x.double() if x.is_floating_point() else x
        self.inputs = [wide(x) for x in workloads.loadInputs(workload, folder)]
        self.call = workloads.loadModel(workload, folder).double()


CONTESTANTS = {"torch": TorchEager, "torchscript": TorchScript, "inductor": Inductor, "onnxruntime": OnnxRuntime,
               "openvino": OpenVino, "iree": Iree, "libtorch": LibTorch, "reference": Reference}


def writeOutputs(contestant, name, folder):
    for i, array in enumerate(contestant.outputs()):
        numpy.save(os.path.join(folder, f"{name}.{options.contestant}.{i}.npy"), numpy.asarray(array))


def serve(contestant, byName, replies):
    current = None
    for line in sys.stdin:
        command, *words = line.split()
        try:
            if command == "load":
                current = words[0]
                contestant.load(byName[current], options.folder)
                answer = "ok"
            elif command == "run":
                contestant.run(int(words[0]))
                answer = str(contestant.run(int(words[1])))
            elif command == "output":
                writeOutputs(contestant, current, options.folder)
                answer = "ok"
            else:
                answer = contestant.settings()
        except Exception as problem:  # noqa: BLE001: peers raise exceptions of all types, and others must still run
            text = " ".join(f"{type(problem).__name__}: {problem}".split())
            answer = f"error: {text[:400]}"
        print(answer, file=replies, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("contestant", choices=CONTESTANTS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", required=True, help="what burin-bench wrote, and list.json")
    parser.add_argument("--make", nargs="+", metavar="NAME", help="only make the files that loading these needs")
    options = parser.parse_args()
    with open(os.path.join(options.folder, "list.json")) as file:
        listed = {w["name"]: w for w in json.load(file)}
    out = os.fdopen(os.dup(1), "w")  # libraries print to stdout; redirect that to stderr
    os.dup2(2, 1)
    contestant = CONTESTANTS[options.contestant](options.threads)
    for name in options.make or []:
        contestant.make(listed[name], options.folder)
    if not options.make:
        serve(contestant, listed, out)
