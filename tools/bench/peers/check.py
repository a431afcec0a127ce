"""Reads "NAME CONTESTANT" lines; answers with the worst relative error of what that contestant wrote, over PyTorch in
f64: the largest difference over the largest value of the reference, the worst of all outputs."""
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


def worstError(expected, folder, name, contestant):
    worst = 0.0
    for i, y in enumerate(expected):
        got = numpy.load(os.path.join(folder, f"{name}.{contestant}.{i}.npy"), mmap_mode="r")
        if got.shape != y.shape:
            return math.inf
        error = numpy.abs(got - y).max() / max(numpy.abs(y).max(), 1e-30)
        worst = math.inf if math.isnan(error) else max(worst, float(error))
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    folder = parser.parse_args().folder
    with open(os.path.join(folder, "list.json")) as file:
        byName = {w["name"]: w for w in json.load(file)}
    current, expected = None, None
    for line in sys.stdin:
        name, contestant = line.split()
        if name != current:
            path = workloads.cached(byName[name], folder, "reference.npz",
                                    lambda path: numpy.savez(path, *reference(byName[name], folder)))
            with numpy.load(path) as arrays:
                current, expected = name, [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
        print(worstError(expected, folder, name, contestant), flush=True)


if __name__ == "__main__":
    main()
