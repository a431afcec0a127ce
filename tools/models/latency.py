#!/usr/bin/env python3
"""Measures ONNX Runtime or PyTorch in turns: prints "ready" and then, for each line on standard input, the microseconds
per call, the median over so many seconds of calls.

    latency.py onnxruntime|torch MODEL VARIANT FOLDER SIZES THREADS SECONDS"""
import os
import statistics
import sys
import time

from networks import catalog
import numpy


def onnxRuntime(model, variant, folder, inputs, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    path = os.path.join(folder, variant + ".onnx")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for value in session.get_inputs():
        binding.bind_ortvalue_input(value.name, onnxruntime.OrtValue.ortvalue_from_numpy(inputs[value.name]))
    for value in session.get_outputs():
        binding.bind_output(value.name)
    return lambda: session.run_with_iobinding(binding)


def pyTorch(model, variant, folder, inputs, threads):
    import export
    import torch
    torch.set_num_threads(threads)
    module = export.load(model)
    values = [torch.from_numpy(inputs[name]) for name in model.inputs]
    if any(isinstance(m, torch.nn.Conv2d) for m in module.modules()):
        module = module.to(memory_format=torch.channels_last)
        values = [x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x for x in values]

    def call():
        with torch.inference_mode():
            module(*values)

    return call


def main():
    peer, name, variant, folder, sizes, threads, seconds = sys.argv[1:]
    with numpy.load(os.path.join(folder, sizes + ".npz")) as arrays:
        inputs = {key[3:]: arrays[key] for key in arrays.files if key.startswith("in.")}
    prepare = {"onnxruntime": onnxRuntime, "torch": pyTorch}[peer]
    call = prepare(catalog.find(name), variant, folder, inputs, int(threads))
    for _ in range(3):
        call()
    print("ready", flush=True)
    for _ in sys.stdin:
        call()
        times, end = [], time.perf_counter() + float(seconds)
        while time.perf_counter() < end or not times:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        print(1e6 * statistics.median(times), flush=True)


if __name__ == "__main__":
    main()
