#!/usr/bin/env python3
"""Exports one variant of a model to ONNX, with inputs and PyTorch's outputs in f64 for each of its sizes.

    export.py MODEL VARIANT FOLDER

writes FOLDER/VARIANT.onnx and, per sizes, FOLDER/SIZES.npz with the arrays in.NAME and out.NAME."""
import argparse
import os
import warnings

from networks import catalog
import numpy
import torch
from networks import weights


def load(model):
    """Returns the module; its weights are the same in every call."""
    torch.manual_seed(0)
    module = model.make().eval()
    if model.spreads:
        weights.spread(module)
    larger = {name: size for name, size in model.sizes[0].items()} | {"batch": 4}
    return weights.calibrate(module, [i.make(n, larger) for n, i in model.inputs.items()])


def asTuple(result):
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def outputNames(count):
    return ["output" if i == 0 else f"output_{i}" for i in range(count)]


def inputsOf(model, sizes):
    return tuple(i.make(n, sizes) for n, i in model.inputs.items())


def identifier(size):
    return size.replace("+", "_plus_")


def export(model, module, variant, path):
    """Exports to ONNX. Dynamic variants are traced at their last sizes, none of which is 1 by chance."""
    sizes, exporter = model.variants()[variant]
    isDynamic = len(sizes) > 1
    inputs = inputsOf(model, next(s for s in reversed(sizes) if not isDynamic or min(s.values()) > 1))
    with torch.inference_mode():
        results = asTuple(module(*inputs))
    names = list(model.inputs)
    options = dict(input_names=names, output_names=outputNames(len(results)), dynamo=exporter == "dynamo")
    axes = {n: i.dynamicAxes() for n, i in model.inputs.items()}
    if isDynamic and exporter == "dynamo":
        options["dynamic_shapes"] = shapesFor(module, [{a: identifier(s) for a, s in axes[n].items()} for n in names])
    elif isDynamic:
        options["dynamic_axes"] = axes
    if exporter == "dynamo":
        options.update(external_data=False, optimize=True, verbose=False)
    torch.onnx.export(module, inputs, str(path), **options)


def shapesFor(module, shapes):
    """Arranges shapes by the parameters of forward: those of *values form one tuple."""
    import inspect
    parameters = inspect.signature(module.forward).parameters.values()
    count = sum(p.kind is not inspect.Parameter.VAR_POSITIONAL for p in parameters)
    isOpen = count < len(parameters)
    return (*shapes[:count], *([tuple(shapes[count:])] if isOpen else []))


def writeReference(model, module, sizes, path):
    wide = lambda x: x.double() if x.is_floating_point() else x
    inputs = inputsOf(model, sizes)
    with torch.inference_mode():
        results = asTuple(module.double()(*map(wide, inputs)))
    arrays = {f"in.{n}": x.numpy() for n, x in zip(model.inputs, inputs)}
    arrays |= {f"out.{n}": x.numpy() for n, x in zip(outputNames(len(results)), results)}
    numpy.savez(path, **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("variant")
    parser.add_argument("folder")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    model = catalog.find(options.model)
    module = load(model)
    path = lambda name: os.path.join(options.folder, name)
    export(model, module, options.variant, path("partial.onnx"))
    for sizes in model.variants()[options.variant][0]:
        writeReference(model, module, sizes, path(catalog.labelOf(sizes) + ".npz"))
    os.replace(path("partial.onnx"), path(options.variant + ".onnx"))


if __name__ == "__main__":
    main()
