#!/usr/bin/env python3
"""Writes generation.safetensors: prompts, further words, and PyTorch's logits for them. The network is that of Gpt.h,
with weights from formulas that GenerationTest.cpp repeats. Each step is a whole text without a cache, in f64."""
import pathlib

import numpy
import torch
from safetensors.numpy import save_file
from torch.nn import functional as F

WORDS, SIZE, HEADS, LAYERS, LENGTH = 101, 32, 4, 2, 48
STEPS, LENGTHS = 24, [9, 4, 6]


def names():
    yield "words.weight", (WORDS, SIZE)
    yield "places.weight", (2 * LENGTH, SIZE)
    for i in range(LAYERS):
        block = f"blocks.{i}."
        for norm in ("norm1", "norm2"):
            yield block + norm + ".weight", (SIZE,)
            yield block + norm + ".bias", (SIZE,)
        for name, rows, columns in (("qkv", 3 * SIZE, SIZE), ("out", SIZE, SIZE), ("up", 4 * SIZE, SIZE),
                                    ("down", SIZE, 4 * SIZE)):
            yield f"{block}{name}.weight", (rows, columns)
            yield f"{block}{name}.bias", (rows,)
    yield "norm.weight", (SIZE,)
    yield "norm.bias", (SIZE,)


def weights():
    made, index = {}, 0
    for name, shape in names():
        count = int(numpy.prod(shape))
        indices = numpy.arange(index + 1, index + count + 1, dtype=numpy.uint64)
        index += count
        fractions = ((indices * numpy.uint64(2654435761)) & numpy.uint64(0xFFFFFFFF)).astype(numpy.float64) / 2.0**32
        values = (fractions - 0.5).astype(numpy.float32) * numpy.float32(0.25)
        if "norm" in name and name.endswith("weight"):
            values = values + numpy.float32(1)
        made[name] = torch.from_numpy(values.reshape(shape)).double()
    return made


def lastLogits(w, tokens):
    x = w["words.weight"][tokens] + w["places.weight"][torch.arange(len(tokens))]
    norm = lambda x, name: F.layer_norm(x, (SIZE,), w[name + ".weight"], w[name + ".bias"])
    linear = lambda x, name: F.linear(x, w[name + ".weight"], w[name + ".bias"])
    for i in range(LAYERS):
        block = f"blocks.{i}."
        q, k, v = linear(norm(x, block + "norm1"), block + "qkv").reshape(-1, 3, HEADS, SIZE // HEADS).permute(1, 2, 0, 3)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(0, 1).reshape(-1, SIZE), block + "out")
        x = x + linear(F.gelu(linear(norm(x, block + "norm2"), block + "up")), block + "down")
    return norm(x, "norm")[-1] @ w["words.weight"].T


def main():
    w, generator = weights(), numpy.random.default_rng(5)
    prompts = numpy.zeros((len(LENGTHS), max(LENGTHS)), numpy.int64)
    for row, length in zip(prompts, LENGTHS):
        row[:length] = generator.integers(0, WORDS, length)
    words = generator.integers(0, WORDS, (STEPS - 1, len(LENGTHS)))
    logits = numpy.zeros((STEPS, len(LENGTHS), WORDS), numpy.float32)
    for row, length in enumerate(LENGTHS):
        text = list(prompts[row, :length])
        for step in range(STEPS):
            logits[step, row] = lastLogits(w, torch.tensor(text)).float().numpy()
            if step + 1 < STEPS:
                text.append(words[step, row])
    save_file({"prompts": prompts, "lengths": numpy.array(LENGTHS, numpy.int64), "words": words, "logits": logits},
              pathlib.Path(__file__).parent / "generation.safetensors")


if __name__ == "__main__":
    main()
