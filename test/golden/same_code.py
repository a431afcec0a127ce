#!/usr/bin/env python3
"""Compares the artifacts that two builds of burin make from the same graphs, byte by byte: code, weights and plan.

same_code.py BEFORE AFTER: two build folders, for example of main and of a branch that only moves code. The graphs are
ten models of burin-bench, written once by BEFORE, the golden graphs, and the .mlir inputs of tests; artifacts contain
the source locations of the graphs, which are the same for both. Exits with 1 if an artifact differs.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ["mlp", "mlp-b64", "lenet", "lenet-b256", "alexnet", "resnet18", "mobilenet_v2", "minilm-l6", "softmax-65x770",
          "layer_norm-65x770", "gelu-65x770", "conv-64x64-57x57-k3s1", "conv-65x257-57x57-k1s1", "depthwise-145-57x57-k3s1", "gemm-511x513x255",
          "gemm-inputs-511x513x255", "gemm-1x4096x4096"]
INPUTS = ["test/golden/v6/*.burin", "test/codegen/inputs/*.mlir", "test/cli/inputs/*.mlir", "test/gpu/inputs/*.mlir"]
TARGETS = ["x86-64-v3", "x86-64-v4", "x86-64-v4+amx", "cuda-sm_80+ptx"]


def compiled(burin, graph, target, path):
    """Returns the bytes of an artifact, or the error without paths."""
    result = subprocess.run([burin, "compile", graph, "--target", target, "-o", path], text=True, capture_output=True)
    return pathlib.Path(path).read_bytes() if result.returncode == 0 else result.stderr


def facts(burin, path):
    """Returns the sections of an artifact as printed by `burin inspect`."""
    result = subprocess.run([burin, "inspect", "--json", path], text=True, capture_output=True)
    return json.loads(result.stdout) if result.returncode == 0 else {}


def compare(before, after, graph, target):
    """Returns None if the artifacts are equal, else a line about the difference."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/before.plate", f"{folder}/after.plate"]
        old, new = compiled(before, graph, target, paths[0]), compiled(after, graph, target, paths[1])
        if old == new:
            return None
        name = f"{graph.name} for {target}"
        if isinstance(old, str) or isinstance(new, str):
            return f"{name}: {old if isinstance(old, str) else 'compiled'} => {new if isinstance(new, str) else 'compiled'}"
        old, new = facts(before, paths[0]), facts(before, paths[1])
        sections = [key for key in old if old[key] != new.get(key)] or ["code"]
        return f"{name}: {', '.join(sections)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--target", action="append", help="instead of all")
    parser.add_argument("--models", nargs="*", default=MODELS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.models:
            subprocess.run([args.before / "bin/burin-bench", "--write", folder, *args.models], check=True)
        graphs = sorted(pathlib.Path(folder).glob("*.burin"))
        graphs += [graph for pattern in INPUTS for graph in sorted(ROOT.glob(pattern))]
        jobs = [(graph, target) for graph in graphs for target in args.target or TARGETS]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            compare_ = lambda job: compare(args.before / "bin/burin", args.after / "bin/burin", *job)
            different = [line for line in pool.map(compare_, jobs) if line]
    print("\n".join(different))
    print(f"{len(jobs) - len(different)} of {len(jobs)} artifacts are equal")
    return 1 if different or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
