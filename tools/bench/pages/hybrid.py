#!/usr/bin/env python3
"""Measures loops, random numbers and states on one thread, beside PyTorch and NumPy. The contestants take turns;
numbers are medians. Run by `tools/dev bench --hybrid`."""
import argparse
import pathlib
import statistics
import sys
import time

from turns import machine, ofOneThread, secondsOf


# ---- the worker for peers

def peerMeasurements():
    import numpy
    import torch

    torch.set_num_threads(1)
    generator = numpy.random.default_rng(1)

    def whileLoop(kernels):
        def run(turns):
            i, value = torch.tensor(0), torch.ones(16)
            while i < turns:
                for _ in range(kernels):
                    value = torch.cumsum(value, 0) * 0.5
                i = i + 1
            return value
        return secondsOf(lambda: run(1000)) / 1000 * 1e9

    def update(size):
        rows = size // 4096
        cache, row, at = torch.zeros(rows, 1024), torch.randn(1, 1024), torch.zeros((), dtype=torch.int64)

        def put():
            cache.index_copy_(0, at.reshape(1), row)
            at.add_(1).remainder_(rows)
        return secondsOf(put)

    return {
        "while-1": lambda: whileLoop(1),
        "while-8": lambda: whileLoop(8),
        "normals": lambda: 1e6 / secondsOf(lambda: torch.randn(1000, 1000)),
        "numpy": lambda: 1e6 / secondsOf(lambda: generator.standard_normal((1000, 1000), dtype=numpy.float32)),
        "update-1": lambda: update(1 << 20),
        "update-64": lambda: update(64 << 20),
    }


def peerWorker():
    measurements = peerMeasurements()
    for line in sys.stdin:
        print(measurements[line.strip()](), flush=True)


# ---- turns

def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default=".build/release/bin/burin-bench-hybrid")
    parser.add_argument("--peer", action="store_true", help="be the worker for PyTorch and NumPy")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--docs", type=pathlib.Path, help="a folder to write hybrid.md into")
    args = parser.parse_args()
    if args.peer:
        return peerWorker()
    burin, peers = ofOneThread("burin", [args.worker]), ofOneThread("peers", [sys.executable, __file__, "--peer"])
    asked = [(burin, name) for name in ["while-1", "while-8", "normals", "update-1", "copy-1", "update-64", "copy-64"]]
    asked += [(peers, name) for name in ["while-1", "while-8", "normals", "numpy", "update-1", "update-64"]]
    values = {each: [] for each in asked}
    for _ in range(args.turns):
        for each in sorted(asked, key=lambda one: one[1]):
            values[each].append(float(each[0].ask(each[1])))
    ours = {name: statistics.median(list) for (who, name), list in values.items() if who is burin}
    theirs = {name: statistics.median(list) for (who, name), list in values.items() if who is peers}
    traces = int(float(burin.ask("traces")))
    perKernel = (ours["while-8"] - ours["while-1"]) / 7
    lines = [
        "| | burin | PyTorch, eager | NumPy |", "|---|---|---|---|",
        f"| iteration of a `while_loop` with one kernel in its body, ns | {ours['while-1']:.0f} | {theirs['while-1']:.0f} | |",
        f"| iteration with eight kernels, ns | {ours['while-8']:.0f} | {theirs['while-8']:.0f} | |",
        f"| iteration without its kernels, ns (from these two) | {ours['while-1'] - perKernel:.0f} | | |",
        f"| normal f32 per second, million | {ours['normals'] / 1e6:.0f} | {theirs['normals'] / 1e6:.0f} | "
        f"{theirs['numpy'] / 1e6:.0f} |",
    ]
    for size in ("1", "64"):
        lines.append(f"| one row of a state of {size} MiB set in place, µs | {ours['update-' + size] * 1e6:.3g} | "
                     f"{theirs['update-' + size] * 1e6:.3g} | |")
        lines.append(f"| the same with another reference to the old value (a copy), µs | {ours['copy-' + size] * 1e6:.3g} "
                     "| | |")
    lines.append(f"| traces of a training step in 100 calls | {traces} | | |")
    print("\n".join(lines))
    if args.docs:
        note = ("# Loops, random numbers, states\n\nMade by `tools/dev bench --hybrid`; the numbers are its output, not "
                "edited by hand. One thread; medians.\n\n")
        import torch
        note += (f"Machine: {machine()}; PyTorch {torch.__version__}; {time.strftime('%Y-%m-%d')}.\n\n")
        args.docs.mkdir(parents=True, exist_ok=True)
        (args.docs / "hybrid.md").write_text(note + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
