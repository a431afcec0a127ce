"""Compiles an ONNX model and compares its results with those of ONNX Runtime."""
import collections.abc
import dataclasses
import pathlib
import subprocess
import tempfile

import numpy

COMPILE_SECONDS = 60


def call(command, seconds=None):
    """Returns (exit code, the last lines of the output)."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, "\n".join(done.stderr.strip().splitlines()[-8:])


def runBurin(options, plate, inputs, names, folder):
    """Returns (outputs, error message)."""
    command = [options.build / "bin/burin-run", plate, "--threads", "1"]
    for name, array in inputs.items():
        numpy.save(folder / f"in.{name}.npy", array)
        command += ["--input", f"{name}=@{folder}/in.{name}.npy"]
    for i, name in enumerate(names):
        command += ["--output", f"{name}=@{folder}/out.{i}.npy"]
    code, text = call(command, 120)
    return (None, text) if code else ([numpy.load(folder / f"out.{i}.npy") for i in range(len(names))], "")


@dataclasses.dataclass(frozen=True)
class Rule:
    """How results are compared: with ONNX Runtime's within `tolerance`. Both are f32 and may sum in different orders;
    where they differ by more and `exact` is given, the error of each against PyTorch in f64 decides (see isAsExact)."""
    tolerance: float
    floor: float = 1e-30  # smallest value that errors are relative to
    chooses: bool = False  # the outputs are rows selected and sorted by data
    exact: collections.abc.Callable | None = None  # maps {input: array} to PyTorch's outputs in f64


def difference(results, expected, rule):
    """Returns the largest difference relative to the largest value of the same output, maximum over all outputs, or a
    message if shapes differ. Two NaNs count as equal."""
    worst = 0.0
    if rule.chooses:
        from check import inOrder
        results = inOrder(results, expected)
    for y, e in zip(results, expected, strict=True):
        if y.shape != e.shape:
            return f"an output has the shape {list(y.shape)}, ONNX Runtime's has {list(e.shape)}"
        if not e.size:
            continue
        y, e = y.astype(numpy.float64), e.astype(numpy.float64)
        same = (y == e) | (numpy.isnan(y) & numpy.isnan(e))
        error = numpy.where(same, 0, numpy.abs(y - e)).max() / max(numpy.nanmax(numpy.abs(e)), rule.floor)
        worst = max(worst, float(numpy.nan_to_num(error, nan=numpy.inf)))
    return worst


# burin's error against f64 may be at most ERROR_RATIO times ONNX Runtime's, and at most ERROR_LIMIT. Each is the
# maximum of many rounding errors and varies: measured pairs (burin, ONNX Runtime) are (9e-5, 3e-5) and (5e-5, 8e-5).
ERROR_RATIO, ERROR_LIMIT = 4, 1e-3


def isAsExact(results, expected, taken, rule):
    """Returns whether the error against f64 is within the limits above, and a text with both errors."""
    if not rule.exact:
        return False, ""
    exact = rule.exact(taken)
    ours, theirs = difference(results, exact, rule), difference(expected, exact, rule)
    if isinstance(ours, str) or isinstance(theirs, str):
        return False, ""
    return ours <= min(ERROR_RATIO * theirs, ERROR_LIMIT), f"; against f64 {ours:.1e}, ONNX Runtime {theirs:.1e}"


def compare(options, onnx, plate, inputsBySize, rule):
    """Returns (state, detail) of a compiled model."""
    import onnxruntime
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    quiet.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(onnx, quiet, providers=["CPUExecutionProvider"])
    except Exception as problem:
        return "peer", str(problem)
    names, worst, refused, remarks = [o.name for o in session.get_outputs()], 0.0, [], ""
    for label, inputs in inputsBySize.items():
        try:
            taken = {value.name: inputs[value.name] for value in session.get_inputs()}
            expected = session.run(None, taken)
        except Exception as problem:
            refused.append(f"{label}: {problem}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            results, problem = runBurin(options, plate, taken, names, pathlib.Path(folder))
        if problem:
            return "DIFFERS", f"{label}: {problem}"
        found = difference(results, expected, rule)
        if isinstance(found, str):
            return "DIFFERS", f"{label}: {found}"
        if found > rule.tolerance:
            isRight, errors = isAsExact(results, expected, taken, rule)
            remarks += errors
            if not isRight:
                return "DIFFERS", f"{label}: {found:.1e}{errors}"
        worst = max(worst, found)
    if len(refused) == len(inputsBySize):
        return "peer", refused[0]
    note = f", ONNX Runtime refuses {len(refused)} of {len(inputsBySize)} sizes" if refused else ""
    return "agrees", f"{worst:.1e}{remarks}{note}"


def compileAndCompare(options, onnx, inputsBySize, rule, plate):
    code, text = call([options.build / "bin/burin", "compile", onnx, "-o", plate], COMPILE_SECONDS)
    if code is None:
        return "TOO SLOW", f"more than {COMPILE_SECONDS} s"
    state = ("REFUSED", text) if code else compare(options, onnx, plate, inputsBySize, rule)
    if state[0] == "agrees":
        plate.unlink()  # artifacts are as large as the weights
    return state
