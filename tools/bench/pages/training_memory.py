#!/usr/bin/env python3
"""Compares the memory that training steps allocate: burin's artifact in burin-run and PyTorch's eager step, on one
thread, both counted at the allocator by tools/bench/pages/allocations.c. PyTorch's count begins after the first step of a
small network, burin's with the process. The networks are those of tools/bench/pages/training.py. Run by
`tools/dev bench --training-memory`."""
import argparse
import ctypes
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

import training

STEPS = 4


def torchPeak(name):
    """The work of a process of its own, whose peak the hook writes at exit."""
    import torch

    torch.set_num_threads(1)
    training.torchStep("mlp", isCompiled=False)().item()  # imports what optimisers and layers import when they are used
    gc.collect()
    ctypes.CDLL(None).allocations_mark()
    step = training.torchStep(name, isCompiled=False)
    for _ in range(STEPS):
        step().item()


def counted(hook, folder, command, **environment):
    """Returns the most bytes that a process had allocated at one time."""
    log = folder / "peak.txt"
    log.unlink(missing_ok=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, **environment, "LD_PRELOAD": str(hook), "ALLOCATIONS_LOG": str(log)})
    return int(log.read_text())


def burinPeak(tools, hook, folder, name):
    """Returns the bytes that a process allocates, and those that the plan says."""
    graph, plate = folder / f"{name}.burin", folder / f"{name}.plate"
    subprocess.run([tools / "burin-bench-training", "eager"], input=f"setup {name}\nsave {graph}\n", text=True,
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([tools / "burin", "compile", graph, "-o", plate], check=True)
    facts = json.loads(subprocess.run([tools / "burin", "inspect", "--json", plate], check=True, text=True,
                                      stdout=subprocess.PIPE).stdout)
    command = [tools / "burin-run", plate, "--threads", "1", "--repeat", str(STEPS)]
    states = {state["name"] for state in facts["states"]}
    for spec in facts["inputs"]:
        if spec["name"] in states:
            continue
        if spec["dtype"] == "f32":
            value = numpy.random.default_rng(1).standard_normal(spec["shape"], dtype=numpy.float32)
        else:
            value = (numpy.arange(numpy.prod(spec["shape"])) % 10).reshape(spec["shape"])
        numpy.save(folder / f"{spec['name']}.npy", value)
        command += ["--input", f"{spec['name']}=@{folder / spec['name']}.npy"]
    return counted(hook, folder, command), facts["memory"]["planned_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path(".build/release/bin"))
    parser.add_argument("--only", action="append", choices=training.NAMES)
    parser.add_argument("--torch", help="be the process for PyTorch")
    args = parser.parse_args()
    if args.torch:
        return torchPeak(args.torch)
    print("| step | intermediate values by the plan, MB | burin allocates, MB | PyTorch allocates, MB | ratio |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        hook = folder / "allocations.so"
        source = pathlib.Path(__file__).with_name("allocations.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", hook, source], check=True)
        for each in args.only or training.NAMES:
            ours, planned = burinPeak(args.tools.resolve(), hook, folder, each)
            theirs = counted(hook, folder, [sys.executable, __file__, "--torch", each], OMP_NUM_THREADS="1")
            print(f"| {training.TITLES[each]} | {planned / 1e6:.2f} | {ours / 1e6:.2f} | {theirs / 1e6:.2f} | "
                  f"{ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
