#!/usr/bin/env python3
"""Checks exported ONNX models with onnx.checker and ONNX Runtime.

    check_export.py ops FOLDER                what onnx-export-samples wrote
    check_export.py models BURIN FOLDER NAME…  graphs NAME.burin with inputs, as burin-bench --write leaves them

Every model must pass the checker with full type and shape inference; ONNX Runtime must give burin's numbers. What ONNX
Runtime has no kernel for is counted. Needs onnx, onnxruntime and numpy.
"""
import collections
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy
import onnx
import onnxruntime

DTYPES = {"f32": numpy.float32, "f64": numpy.float64, "f16": numpy.float16, "bf16": ml_dtypes.bfloat16,
          "i8": numpy.int8, "u8": numpy.uint8, "i16": numpy.int16, "i32": numpy.int32, "i64": numpy.int64,
          "bool": numpy.bool_, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
# Floats that numpy does not have, with ONNX's types.
NARROW = {numpy.dtype(ml_dtypes.bfloat16): onnx.TensorProto.BFLOAT16,
          numpy.dtype(ml_dtypes.float8_e4m3fn): onnx.TensorProto.FLOAT8E4M3FN,
          numpy.dtype(ml_dtypes.float8_e5m2): onnx.TensorProto.FLOAT8E5M2}
# Relative to the largest value compared, and absolute. ONNX Runtime keeps factors of fused nodes in f32 even in f64
# models.
TOLERANCES = {"f32": 2e-5, "f64": 1e-7, "f16": 5e-3, "bf16": 4e-2, "f8e4m3fn": 0, "f8e5m2": 0}


def withoutNarrowFloats(model):
    """Converts outputs of types that numpy does not have to f32."""
    for output in model.graph.output:
        kind = output.type.tensor_type
        if kind.elem_type in NARROW.values():
            kind.elem_type = onnx.TensorProto.FLOAT
            name, output.name = output.name, output.name + " as f32"
            model.graph.node.append(onnx.helper.make_node("Cast", [name], [output.name], to=onnx.TensorProto.FLOAT))
    return model.SerializeToString()


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def value(array):
    if array.dtype in NARROW:
        bits = array.view(numpy.uint16 if array.itemsize == 2 else numpy.uint8)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, NARROW[array.dtype])
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def run(model, inputs):
    """Returns the outputs, or None if ONNX Runtime has no kernel for an op."""
    try:
        loaded = session(withoutNarrowFloats(model))
        names = [i.name for i in loaded.get_inputs()]
        outputs = loaded.run_with_ort_values(None, dict(zip(names, map(value, inputs))))
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    except onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException as problem:
        if "is not supported" in str(problem):
            return None
        raise
    return [output.numpy() for output in outputs]


def difference(got, want, kind):
    """Returns the first difference, or ""."""
    if want.dtype in NARROW:
        want = want.astype(numpy.float32)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if kind not in TOLERANCES:
        return "" if numpy.array_equal(got, want) else f"{(got != want).sum()} of {want.size} elements differ"
    got, want = got.astype(numpy.float64), want.astype(numpy.float64)
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    finite = numpy.abs(want[numpy.isfinite(want)])
    allowed = TOLERANCES[kind] * max(1.0, finite.max() if finite.size else 0)
    with numpy.errstate(invalid="ignore"):
        wrong = ~(same | (numpy.abs(got - want) <= allowed))
    if not wrong.any():
        return ""
    at = int(numpy.flatnonzero(wrong)[0])
    return f"{wrong.sum()} of {want.size} elements differ, element {at}: {got.flat[at]} instead of {want.flat[at]}"


def readSample(folder, line):
    name, text, *fields = line.split("\t")
    data, at, sides = (folder / f"{name}.bin").read_bytes(), 0, {"in": [], "out": []}
    for side, kind, sizes in zip(fields[::3], fields[1::3], fields[2::3]):
        shape = [int(size) for size in sizes.split(",") if size]
        count = int(numpy.prod(shape))
        array = numpy.frombuffer(data, DTYPES[kind], count, at).reshape(shape)
        at += array.nbytes
        sides[side].append((kind, array))
    return name, text, sides["in"], sides["out"]


def checkSample(folder, line):
    """Returns ("passed" | "no kernel" | "failed", message)."""
    name, text, inputs, outputs = readSample(folder, line)
    path = folder / f"{name}.onnx"
    try:
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        results = run(model, [array for _, array in inputs])
    except Exception as problem:  # whatever it is, the model is to blame
        return "failed", f"{name} ({text}): {str(problem).splitlines()[0][:300]}"
    if results is None:
        return "no kernel", name
    for i, ((kind, want), got) in enumerate(zip(outputs, results)):
        if different := difference(got, want, kind):
            return "failed", f"{name} ({text}): output {i}: {different}"
    return "passed", name


def checkStates(folder, line):
    """Compares consecutive runs: ONNX Runtime's outputs s.out become the inputs s.in of the next run."""
    name, *fields = line.split("\t")
    data, at, runs, states = (folder / f"{name}.bin").read_bytes(), 0, [], {}
    for side, kind, sizes in zip(fields[::3], fields[1::3], fields[2::3]):
        shape = [int(size) for size in sizes.split(",") if size]
        array = numpy.frombuffer(data, DTYPES[kind], int(numpy.prod(shape)), at).reshape(shape)
        at += array.nbytes
        side, _, state = side.partition(" ")
        if side == "state":
            states[f"{state}.in"] = array
        elif side == "in" and (not runs or runs[-1]["out"]):
            runs.append({"in": [array], "out": [], "after": {}})
        elif side == "after":
            runs[-1]["after"][f"{state}.out"] = (kind, array)
        else:
            runs[-1][side].append(array if side == "in" else (kind, array))
    try:
        onnx.checker.check_model(onnx.load(folder / f"{name}.onnx"), full_check=True)
        loaded = session(str(folder / f"{name}.onnx"))
        inputs, outputs = [i.name for i in loaded.get_inputs()], [o.name for o in loaded.get_outputs()]
        extra = [i for i in inputs if i.endswith(".in")]
        if not extra or not set(extra) <= set(states) or inputs[len(inputs) - len(extra):] != extra:
            return "failed", f"{name}: the inputs are {inputs}, the states {sorted(states)}"
        for number, one in enumerate(runs):
            feed = dict(zip(inputs, one["in"])) | {i: states[i] for i in extra}
            got = dict(zip(outputs, loaded.run(None, feed)))
            want = dict(zip(outputs, one["out"])) | {o: one["after"][o] for o in outputs if o.endswith(".out")}
            for output, (kind, array) in want.items():
                if different := difference(got[output], array, kind):
                    return "failed", f"{name}: run {number}: {output}: {different}"
            states |= {f"{o[:-4]}.in": got[o] for o in outputs if o.endswith(".out")}
    except Exception as problem:  # whatever it is, the model is to blame
        return "failed", f"{name}: {str(problem).splitlines()[0][:300]}"
    return "passed", name


def checkOps(folder):
    results = [checkSample(folder, line) for line in (folder / "list.txt").read_text().splitlines()]
    results += [checkStates(folder, line) for line in (folder / "states.txt").read_text().splitlines()]
    for outcome, what in results:
        if outcome == "failed":
            print("failed", what)
    counts = collections.Counter(outcome for outcome, _ in results)
    without = sorted({"-".join(what.split("-")[:2]) for outcome, what in results if outcome == "no kernel"})
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['no kernel']} without a kernel in ONNX Runtime")
    if without:
        print("without a kernel:", " ".join(without))
    return counts["failed"]


def checkModel(burin, folder, name):
    """Returns the largest difference over the largest value, maximum over all outputs."""
    model, arrays = folder / f"{name}.onnx", []
    subprocess.run([burin, "compile", folder / f"{name}.burin", "--emit", "onnx", "-o", model], check=True)
    onnx.checker.check_model(str(model), full_check=True)
    command = [burin, "run", folder / f"{name}.burin"]
    inputs = {line: folder / f"{name}.{line}.npy" for line in (folder / f"{name}.inputs").read_text().split()}
    for key, file in inputs.items():
        command += ["--input", f"{key}=@{file}"]
        arrays.append(numpy.load(file))
    loaded = session(str(model))
    assert [i.name for i in loaded.get_inputs()] == list(inputs), "the inputs' names or their order differ"
    outputs = {o.name: folder / f"{name}.out.{i}.npy" for i, o in enumerate(loaded.get_outputs())}
    for key, file in outputs.items():
        command += ["--output", f"{key}=@{file}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    worst = 0.0
    for got, file in zip(loaded.run(None, dict(zip(inputs, arrays))), outputs.values()):
        want = numpy.load(file)
        worst = max(worst, float(numpy.abs(got - want).max() / numpy.abs(want).max()))
    return worst


def checkModels(burin, folder, names):
    failed = 0
    for name in names:
        worst = checkModel(burin, folder, name)
        failed += not worst < 1e-4
        print(f"{name}: {worst:.1e}{'' if worst < 1e-4 else ' FAILED'}")
    return failed


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "ops":
        sys.exit(checkOps(pathlib.Path(sys.argv[2])) != 0)
    if len(sys.argv) > 4 and sys.argv[1] == "models":
        sys.exit(checkModels(sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]) != 0)
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
