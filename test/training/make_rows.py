#!/usr/bin/env python3
"""Writes rows.json: five steps of PyTorch's optimisers on an embedding with sparse gradients, in f64. Needs torch:
python3 make_rows.py"""
import pathlib

import torch
from torch import optim
from torch_values import ints, rand, write

table = rand(7, 3)
indices = [ints(0, 7, 2, 4) for _ in range(5)]  # some rows repeatedly, some never
weights = [rand(2, 4, 3) for _ in range(5)]
cases = {"common": {"w": table} | {f"i.{s}": i for s, i in enumerate(indices)} |
                   {f"g.{s}": g for s, g in enumerate(weights)}}


def run(name, make, padding=None):
    layer = torch.nn.Embedding(7, 3, sparse=True, padding_idx=padding, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(table)
    optimizer = make(layer.parameters())
    tensors = {}
    for step, (i, g) in enumerate(zip(indices, weights)):
        optimizer.zero_grad()
        ((layer(i) ** 2) * g).sum().backward()
        if step == 0:
            tensors["grad"] = layer.weight.grad.to_dense()
        optimizer.step()
        tensors[f"after.{step}"] = layer.weight.detach().clone()
    cases[name] = tensors


run("SGD", lambda p: optim.SGD(p, 0.02))
run("SGD maximize", lambda p: optim.SGD(p, 0.02, maximize=True))
run("Adagrad", lambda p: optim.Adagrad(p, 0.1, lr_decay=0.1, initial_accumulator_value=0.2))
run("SparseAdam", lambda p: optim.SparseAdam(list(p), 0.05, betas=(0.8, 0.9)))
run("padding", lambda p: optim.SparseAdam(list(p), 0.05), padding=3)
write(pathlib.Path(__file__).parent / "rows.json", cases)
