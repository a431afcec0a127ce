#!/usr/bin/env python3
"""Writes from_pytorch.json: inputs, and PyTorch's results for the left sides of docs/from-pytorch.md.

Needs torch and numpy; run it again after adding a row:  python3 make_from_pytorch.py"""
import json
import math

import numpy
import torch
import torch.nn.functional as F

from from_pytorch import INPUTS, STORED, SYMBOLS, rows

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32",
         torch.int64: "i64", torch.bool: "bool", torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2"}


def number(value):
    if isinstance(value, (bool, int)):
        return int(value)
    return float(f"{value:.9g}") if math.isfinite(value) else str(value)


def tensor(value):
    value = torch.as_tensor(value)
    return [NAMES[value.dtype], list(value.shape), [number(element) for element in value.reshape(-1).tolist()]]


def makeInputs():
    generator = torch.Generator().manual_seed(5)

    def make(name, dtype, sizes):
        shape = [SYMBOLS.get(size, size) for size in sizes]
        if dtype == "f32":  # nonzero multiples of 1/16: short in the file, exact in every float type
            values = torch.randint(0, 48, shape, generator=generator)
            return ((values * 2 + 1) / 32 - 1.5)
        high = {"i": 4, "j": 3, "k": 4, "p": 2}[name]
        values = torch.randint(0, high, shape, generator=generator)
        return values.bool() if dtype == "bool" else values

    return {name: make(name, *spec) for name, spec in INPUTS.items()}


def main():
    inputs = makeInputs()
    scope = {"torch": torch, "F": F, "math": math, "numpy": numpy, **inputs}
    results = {}
    for line, section, expression, _ in rows():
        try:
            result = eval(expression, scope)
        except Exception as problem:
            raise SystemExit(f"line {line}: {expression}: {problem}")
        parts = result if isinstance(result, (tuple, list)) else [result]
        parts = [part.detach() if isinstance(part, torch.Tensor) else part for part in parts]
        results[expression] = [tensor(part) for part in parts]
        if "shapes only" in section:
            results[expression] = [part[:2] + [[]] for part in results[expression]]
    text = {"torch": torch.__version__, "inputs": {name: tensor(x) for name, x in inputs.items()}, "results": results}
    lines = ['{"torch": ' + json.dumps(text["torch"]) + ","]
    for key in ("inputs", "results"):
        lines.append(f'"{key}": {{')
        lines.append(",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in text[key].items()))
        lines.append("}," if key == "inputs" else "}}")
    STORED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
