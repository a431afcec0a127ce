#!/usr/bin/env python3
"""What it takes to compile ONNX models: seconds, kernels, the largest kernel in instructions of LLVM IR, and the time in
which the first run with a shape is planned. Run by `tools/dev bench --compile`, for exports of torchvision and for the
models in packages of PyPI; or for the ONNX files that are named. `--docs PAGE` writes the table as a page.

CPU seconds are those of all threads of `burin compile`; other work on the machine changes them little."""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "models"))
from sweeps import packages  # noqa: E402

EXPORTED = ("mobilenet-v3-large", "efficientnet-b0", "shufflenet-v2-x1-0", "resnet50", "detector", "swin-t")
MOST_INSTRUCTIONS, MOST_SECONDS = 5000, 2.0  # the aims


def exported(name, options):
    """The export of a model of catalog.py with its sizes dynamic."""
    folder = options.data / name
    file = folder / "dynamic.onnx"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, HERE.parents[1] / "models" / "export.py", name, "dynamic", folder], check=True,
                       capture_output=True)
    return file


def models(options):
    """Yields (name, file)."""
    isNamed = lambda name: not options.models or any(part in name for part in options.models)
    if options.models and all(name.endswith(".onnx") for name in options.models):
        yield from ((pathlib.Path(name).stem, pathlib.Path(name)) for name in options.models)
        return
    yield from ((name, exported(name, options)) for name in EXPORTED if isNamed(name))
    yield from ((name, file) for name, file in packages.download().items() if isNamed(name))


def kernelsOf(text):
    """(emitted, optimized instructions, seconds, kernel) of each kernel, from the lines of --time-kernels."""
    lines = (line.split(None, 5) for line in text.splitlines() if re.match(r" *[\d.]+ +[\d.]+ +[\d.]+ +\d", line))
    return [(int(emitted), int(optimized), (float(mlir) + float(passes) + float(code)) * 1e-3, kernel.strip())
            for mlir, passes, code, emitted, optimized, kernel in lines]


def inputsFor(file, folder, options):
    """Arguments that give the sizes of a run: the first of those that the sweep runs a model of a package with."""
    if pathlib.Path(".build/models/packages").resolve() not in file.resolve().parents:
        return [f"--dim={dim}" for dim in options.dim]
    arguments = []
    for name, array in next(iter(packages.inputsOf(file).values())).items():
        place = pathlib.Path(folder) / f"{len(arguments)}.npy"
        numpy.save(place, array)
        arguments.append(f"--input={name}=@{place}")
    return arguments


def planned(plate, arguments, options):
    """Microseconds of planning, the least of some processes, and steps; None if the run fails."""
    runs = []
    for _ in range(3):
        ran = subprocess.run([options.burin, "bench", plate, "--threads=1", "--iterations=1", "--json", "--profile",
                              *arguments], capture_output=True, text=True)
        if ran.returncode:
            return None, None
        runs.append(json.loads(ran.stdout)["runs"][0])
    return min(run["bind_us"] for run in runs), len(runs[0]["steps"])


def measure(file, options):
    with tempfile.TemporaryDirectory() as folder:
        plate = pathlib.Path(folder) / "model.plate"
        before, begin = os.times(), time.perf_counter()
        done = subprocess.run([options.burin, "compile", file, "-o", plate, "--time-kernels"], capture_output=True,
                              text=True)
        seconds, after = time.perf_counter() - begin, os.times()
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        plan, steps = planned(plate, inputsFor(file, folder, options), options)
        return {"seconds": seconds, "cpu": cpu, "kernels": kernelsOf(done.stderr), "plan_us": plan, "steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="ONNX files, or parts of names of models; default: all")
    parser.add_argument("--burin", default=".build/release/bin/burin")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(".build/models/compiling"))
    parser.add_argument("--dim", action="append", default=[], help="NAME=SIZE for the first run of exports and named files; default 1")
    parser.add_argument("--docs", type=pathlib.Path, help="write the table there")
    options = parser.parse_args()
    header = ["model", "kernels", "seconds", "CPU seconds", "largest kernel", "emitted", "plan µs", "steps"]
    print(f"{header[0]:44} {header[1]:>7} {header[2]:>8} {header[3]:>11} {header[4]:>14} {header[5]:>8} {header[6]:>8} "
          f"{header[7]:>6}  the largest")
    rows, failed = [], 0
    for name, file in models(options):
        try:
            m = measure(file, options)
        except RuntimeError as problem:
            print(f"{name:44} failed: {problem}")
            failed += 1
            continue
        largest = max(m["kernels"], key=lambda kernel: kernel[1], default=(0, 0, 0, ""))
        emitted = max((kernel[0] for kernel in m["kernels"]), default=0)
        plan = "–" if m["plan_us"] is None else f"{m['plan_us']:.0f}"
        row = [name, str(len(m["kernels"])), f"{m['seconds']:.2f}", f"{m['cpu']:.2f}", str(largest[1]), str(emitted), plan,
               "–" if m["steps"] is None else str(m["steps"])]
        rows.append(row)
        print(f"{row[0]:44} {row[1]:>7} {row[2]:>8} {row[3]:>11} {row[4]:>14} {row[5]:>8} {row[6]:>8} {row[7]:>6}  "
              f"{largest[3][:60]}", flush=True)
    if options.docs and rows:
        options.docs.parent.mkdir(parents=True, exist_ok=True)
        above = [row[0] for row in rows if int(row[4]) > MOST_INSTRUCTIONS]
        slow = [row[0] for row in rows if float(row[2]) > MOST_SECONDS]
        lines = ["# Compiling models", "",
                 f"Written by `tools/dev bench --compile --docs PAGE` on {datetime.date.today()}, "
                 f"{os.cpu_count()} cores. *Largest kernel*: instructions of LLVM IR after LLVM's passes; *emitted*: the "
                 "most before them. *Plan*: what the first run with a shape takes before its first step.", "",
                 "| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        lines += ["", f"Above {MOST_INSTRUCTIONS} instructions: {', '.join(above) or 'none'}. More than {MOST_SECONDS:.0f} "
                  f"seconds: {', '.join(slow) or 'none'}.", ""]
        options.docs.write_text("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
