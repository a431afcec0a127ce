#!/usr/bin/env python3
"""Compiles real architectures, exported from PyTorch to ONNX, and compares results with ONNX Runtime and with PyTorch
in f64.

Each model has a static variant, and a dynamic one that runs with several combinations of sizes from one artifact. The
exit code is 1 if a model does not compile, its results differ, or compiling takes more than 20 seconds or 4 GB."""
import argparse
import contextlib
import hashlib
import inspect
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from networks import catalog
import numpy
import report

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "common"))
from contestant import Contestant, Ended  # noqa: E402: found by the line above

COMPILE_SECONDS, COMPILE_BYTES = 20, 4e9
ROUNDS, TURN_SECONDS = 5, 0.3  # of latencies


class Failed(Exception):
    """A failure of one variant."""


class Progress:
    """A progress line, shown only on a terminal."""

    def __init__(self):
        self.shown = sys.stderr.isatty() and not os.environ.get("NO_COLOR")

    def say(self, text):
        if self.shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def clear(self):
        self.say("")


def lastLines(text, count=6):
    return "\n".join(text.strip().splitlines()[-count:])


def call(command, what):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{what}: exit code {done.returncode}\n{lastLines(done.stderr)}")
    return done.stdout


def recipe(model, variant):
    """Returns a hash of everything that the export depends on."""
    make = getattr(model.make, "func", model.make)
    source = inspect.getsource(make)
    files = ["export.py", "networks/inputs.py", "networks/weights.py"] + (["networks/nets.py"] if "nets" in source else [])
    facts = (model.inputs, model.variants()[variant], model.spreads, getattr(model.make, "args", ()),
             getattr(model.make, "keywords", {}))
    text = "\n".join([source, repr(facts), *((HERE / name).read_text() for name in files)])
    return hashlib.sha256(text.encode()).hexdigest()


def export(model, variant, folder):
    """Exports the variant if its recipe has changed, and returns the path."""
    path, stamp = folder / (variant + ".onnx"), folder / (variant + ".recipe")
    if not path.exists() or not stamp.exists() or stamp.read_text() != recipe(model, variant):
        stamp.unlink(missing_ok=True)
        call([sys.executable, HERE / "export.py", model.name, variant, folder], "the export from PyTorch")
        stamp.write_text(recipe(model, variant))
    return path


def compileModel(options, onnx, plate):
    """Returns the seconds, the peak memory in bytes, and the size of the artifact in bytes."""
    command = [*options.around, sys.executable, HERE / "usage.py", options.burin, "compile", onnx, "-o", plate]
    seconds, memory = call(command, "burin compile").split()[-2:]
    return {"seconds": float(seconds), "memory": int(memory), "size": plate.stat().st_size}


def runBurin(options, plate, inputs, outputNames):
    with tempfile.TemporaryDirectory() as folder:
        command = [options.run, plate, "--threads", "1"]
        for name, array in inputs.items():
            numpy.save(f"{folder}/in.{name}.npy", array)
            command += ["--input", f"{name}=@{folder}/in.{name}.npy"]
        for name in outputNames:
            command += ["--output", f"{name}=@{folder}/{name}.npy"]
        call(command, "burin-run")
        return [numpy.load(f"{folder}/{name}.npy") for name in outputNames]


def runOnnxRuntime(session, inputs):
    return session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})


def inOrder(results, expected):
    """For models that select rows by score: reorders `results` to match `expected`, as rows with nearly equal scores
    may come in either order. Each expected row is matched with the nearest row."""
    if [y.shape for y in results] != [e.shape for e in expected]:
        return results
    scales = [max(numpy.abs(e).max(initial=0), 1e-30) for e in expected]
    rows = lambda arrays: numpy.concatenate([y.reshape(len(y), -1) / s for y, s in zip(arrays, scales)], 1)
    ours, theirs = rows(results), rows(expected)
    nearest = [int(numpy.abs(ours - row).max(1).argmin()) for row in theirs]
    return [y[nearest] for y in results] if len(set(nearest)) == len(nearest) else results


def worstError(results, expected):
    """Returns the largest difference relative to the largest value of the same output, maximum over all outputs."""
    worst = 0.0
    for y, e in zip(results, expected, strict=True):
        if y.shape != e.shape:
            raise Failed(f"an output has the shape {list(y.shape)}, but {list(e.shape)} is right")
        if e.size:
            error = numpy.abs(y.astype(numpy.float64) - e).max() / max(numpy.abs(e).max(), 1e-30)
            worst = max(worst, float(numpy.nan_to_num(error, nan=numpy.inf)))
    return worst


class Peer(Contestant):
    """A process of ONNX Runtime or PyTorch, which is stopped while others measure."""

    def __init__(self, name, command):
        self.errors = tempfile.TemporaryFile("w+")
        super().__init__(name, command, log=self.errors)
        while self.line() != "ready":  # what packages print while they are loaded
            pass
        self.pause()

    def line(self):
        try:
            return super().line()
        except Ended as error:
            self.errors.seek(0)
            raise Failed(f"{error}\n{lastLines(self.errors.read())}") from None

    def measure(self):
        microseconds = float(self.ask())
        self.pause()
        return microseconds


def measure(options, model, variant, folder, sizes, inputs, threads):
    """Returns {contestant: microseconds per call}, medians of ROUNDS in which the contestants take turns."""
    times = {"burin": [], "onnxruntime": [], "torch": []}
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as running:
        command = [*options.around, options.burin, "bench", folder / (variant + ".plate"), "--json", "--threads",
                   str(threads), "--warmup", "3", "--min-time", str(TURN_SECONDS)]
        for name, array in inputs.items():
            numpy.save(f"{temporary}/{name}.npy", array)
            command += ["--input", f"{name}=@{temporary}/{name}.npy"]
        turns = {"burin": lambda: json.loads(call(command, "burin bench"))["runs"][0]["median_us"]}
        for name in ("onnxruntime", "torch"):
            peer = Peer(name, [*options.around, sys.executable, HERE / "latency.py", name, model.name, variant, folder,
                               catalog.labelOf(sizes), threads, TURN_SECONDS])
            running.callback(peer.close)
            turns[name] = peer.measure
        for _ in range(ROUNDS):
            for name, turn in turns.items():
                times[name].append(turn())
    return {name: statistics.median(values) for name, values in times.items()}


def checkVariant(options, model, variant, folder, progress):
    """Checks one variant and returns its row of the report."""
    import onnxruntime
    sizesToRun, exporter = model.variants()[variant]
    row = {"variant": variant, "exporter": exporter, "tolerance": model.tolerance, "runs": []}
    say = lambda text: progress.say(f"{model.name} {variant}: {text}")
    say("export")
    onnx = export(model, variant, folder)
    say("compile")
    plate = folder / (variant + ".plate")
    row["compile"] = compileModel(options, onnx, plate)
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for sizes in sizesToRun:
        label = catalog.labelOf(sizes)
        say(label)
        with numpy.load(folder / (label + ".npz")) as arrays:
            inputs = {key[3:]: arrays[key] for key in arrays.files if key.startswith("in.")}
            exact = [arrays["out." + name] for name in names]
        ours, theirs = runBurin(options, plate, inputs, names), runOnnxRuntime(session, inputs)
        if model.chooses:
            ours, theirs = inOrder(ours, exact), inOrder(theirs, exact)
        run = {"sizes": sizes, "difference": worstError(ours, theirs), "error": worstError(ours, exact),
               "peerError": worstError(theirs, exact)}
        row["runs"].append(run)
        if run["difference"] > model.tolerance:
            raise Failed(f"{label}: differs from ONNX Runtime by {run['difference']:.1e}; from PyTorch in f64 burin "
                         f"differs by {run['error']:.1e}, ONNX Runtime by {run['peerError']:.1e}")
        if not options.quick:
            say(label + " latency")
            run["latency"] = [measure(options, model, variant, folder, sizes, inputs, count) for count in options.threads]
    if options.quick:
        return row
    if row["compile"]["seconds"] > COMPILE_SECONDS or row["compile"]["memory"] > COMPILE_BYTES:
        raise Failed(f"compiling takes {row['compile']['seconds']:.1f} s and {row['compile']['memory'] / 1e9:.1f} GB")
    return row


def checkModel(options, model, progress):
    """Returns (rows, failures)."""
    folder = options.data / model.name
    folder.mkdir(parents=True, exist_ok=True)
    rows, failures = [], []
    for variant in model.variants():
        if not re.search(options.variant, variant):
            continue
        try:
            row = checkVariant(options, model, variant, folder, progress)
            rows.append(row)
            progress.clear()
            print(report.line(model, row), flush=True)
        except Failed as problem:
            failures.append(f"{model.name} {variant}: {problem}")
            progress.clear()
            print("FAILED " + failures[-1], flush=True)
    return rows, failures


def writeDocs(options):
    """Writes docs/models.md from the latest results, with these numbers of threads, of every model that has any."""
    files = {m.name: options.data / m.name / "results.json" for m in catalog.MODELS}
    stored = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    stored = {name: value for name, value in stored.items() if value["threads"] == options.threads}
    results = {name: value["rows"] for name, value in stored.items()}
    measured = sorted({value["measured"] for value in stored.values()})
    report.write(results, HERE.parent.parent / "docs/models.md", measured, options.threads,
                 (COMPILE_SECONDS, COMPILE_BYTES))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(".build/release"))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(".build/models"),
                        help="exported models, artifacts and results (default: .build/models)")
    parser.add_argument("--filter", action="append", help="only models that match this regular expression")
    parser.add_argument("--variant", default="", help="only variants that match: static, dynamic")
    parser.add_argument("--quick", action="store_true", help="no latencies, no limit on the time to compile, no docs/models.md")
    parser.add_argument("--threads", default="1", help="numbers of threads for latencies: 1,2 (default: 1)")
    parser.add_argument("--around", default="", help="what to start timed commands with, such as 'taskset -c 1'")
    parser.add_argument("--list", action="store_true", help="print the names of the models")
    options = parser.parse_args()
    options.around = options.around.split()
    options.threads = [int(count) for count in options.threads.split(",")]
    options.burin, options.run = options.build / "bin/burin", options.build / "bin/burin-run"
    return options


def main():
    options = parse()
    models = [m for m in catalog.MODELS if not options.filter or any(re.search(f, m.name) for f in options.filter)]
    if options.list:
        sys.exit(print(*(m.name for m in models), sep="\n"))
    if not models:
        sys.exit(f"check.py: no model matches {' or '.join(options.filter)}; --list shows them")
    progress, failures, measured = Progress(), [], {}
    print(report.HEADING, flush=True)
    for model in models:
        rows, problems = checkModel(options, model, progress)
        failures += problems
        measured[model.name] = rows
        if not options.quick and not options.variant and not problems:
            results = {"measured": report.whenAndWhat(), "threads": options.threads, "rows": rows}
            (options.data / model.name / "results.json").write_text(json.dumps(results, indent=1))
    if not options.quick:
        if not options.variant:
            writeDocs(options)
        for line in report.summary(measured, options.threads):
            print(f"\n{line}")
    print(f"\n{len(models)} models, {len(failures)} failures")
    for failure in failures:
        print(failure.splitlines()[0])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
