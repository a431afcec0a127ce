"""Shared by the scripts here: tensors that are short as text, and files of cases.

A file is {case: {name: tensor}}; a tensor is [element type, shape, elements]."""
import json
import math

import torch

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.bool: "bool"}
generator = torch.Generator().manual_seed(11)


def rand(*shape, low=-2.0, high=2.0):
    """Multiples of 1/64 in f64: short in the file and exact in every float type."""
    return torch.randint(int(low * 64), int(high * 64) + 1, shape, generator=generator).double() / 64


def ints(low, high, *shape):
    return torch.randint(low, high, shape, generator=generator)


def number(x):
    if isinstance(x, (bool, int)):
        return int(x)
    if not math.isfinite(x):
        return str(x)
    return int(x) if x == int(x) else float(f"{x:.12g}")


def tensor(t):
    return [NAMES[t.dtype], list(t.shape), [number(x) for x in t.detach().reshape(-1).tolist()]]


def write(path, cases):
    with open(path, "w") as file:
        file.write("{\n")
        for i, (name, tensors) in enumerate(cases.items()):
            entry = json.dumps({key: tensor(t) for key, t in tensors.items()}, separators=(",", ":"))
            file.write(f"{json.dumps(name)}: {entry}{',' if i + 1 < len(cases) else ''}\n")
        file.write("}\n")
