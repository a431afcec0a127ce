"""Reads lines "NAME CONTESTANT" from stdin and prints the worst relative error of that contestant's outputs against
PyTorch in f64: the largest difference over the largest value of the reference, maximum over all outputs. Removes the
output files."""
import argparse
import json
import math
import os
import sys

import numpy
import torch
import workloads


def reference(workload, folder):
    wide = lambda x: x.double() if x.is_floating_point() else x
    model = workloads.loadModel(workload, folder).double()
    with torch.inference_mode():
        result = model(*map(wide, workloads.loadInputs(workload, folder)))
    return [y.numpy() for y in (result if isinstance(result, (tuple, list)) else [result])]


def isLarge(workload, folder):
    sizes = [os.path.getsize(os.path.join(folder, f"{workload['name']}.{name}.npy"))
             for name in workloads.inputNames(workload, folder)]
    return sum(sizes) > 1 << 26


def worstError(expected, folder, name, contestant):
    worst = 0.0
    for i, y in enumerate(expected):
        path = os.path.join(folder, f"{name}.{contestant}.{i}.npy")
        got = numpy.load(path)
        os.remove(path)
        if got.shape != y.shape:
            return math.inf
        error = numpy.abs(got - y).max() / max(numpy.abs(y).max(), 1e-30)
        worst = math.inf if math.isnan(error) else max(worst, float(error))
    return worst


def storedReference(workload, folder):
    """Returns the reference, computed once. Large outputs are computed each time instead, as reading them from a file
    would take as long."""
    if isLarge(workload, folder):
        return reference(workload, folder)
    path = workloads.cached(workload, folder, "reference.npz",
                            lambda path: numpy.savez(path, *reference(workload, folder)))
    with numpy.load(path) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    folder = parser.parse_args().folder
    with open(os.path.join(folder, "list.json")) as file:
        byName = {w["name"]: w for w in json.load(file)}
    current, expected = None, None
    print("ready", flush=True)  # importing takes seconds of CPU time, during which nothing else should be measured
    for line in sys.stdin:
        name, contestant = line.split()
        if name != current:
            current, expected = name, storedReference(byName[name], folder)
        print(worstError(expected, folder, name, contestant), flush=True)


if __name__ == "__main__":
    main()
