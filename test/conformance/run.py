#!/usr/bin/env python3
"""Runs ONNX's backend tests through `burin run` and compares with the expected outputs.

    run.py BURIN NAME=FOLDER… [--list FILE] [--only REGEX] [--jobs N] [--update] [--reasons] [--verbose]

A folder holds folders of tests (node, simple, …), each test a folder with model.onnx and test_data_set_0. Each test is
one of passed, unsupported (burin says what it does not have: exit code 4) or failed. The list names the unsupported
ones with their reasons: a test that fails, or is unsupported and not in the list, makes the exit code 1. A reason that
starts with "wrong data" excuses a failure: that is written by hand, and --update keeps it.
Of models with random ops only shape and element type are compared, as ONNX's own runner does.

Standard library only: the files' names are all that is needed from the models, and burin reads the tensors itself.
"""
import argparse
import ast
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TIMEOUT_SECONDS = 60
TOLERANCES = ["--rtol", "1e-3", "--atol", "1e-7"]  # the tolerances of ONNX's own runner


def fields(message):
    """Yields the (number, value) pairs of a protobuf message; value is an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size = varint()
            yield key >> 3, message[at : at + size]
            at += size


def signature(model):
    """Returns the names of the inputs that are not initializers, and those of the outputs."""
    graph = dict(fields(model))[7]
    inputs, outputs, initializers = [], [], set()
    for number, value in fields(graph):
        if number in (11, 12):
            (inputs if number == 11 else outputs).append(dict(fields(value))[1].decode())
        elif number == 5:
            initializers.add(dict(fields(value)).get(8, b"").decode())
    return [name for name in inputs if name not in initializers], outputs


RANDOM = re.compile(rb"Bernoulli|Multinomial|Random(Normal|Uniform)")  # ops
# Element types of TensorProto, with their names in .npy headers.
TYPES = {1: "<f4", 2: "|u1", 3: "|i1", 5: "<i2", 6: "<i4", 7: "<i8", 9: "|b1", 10: "<f2", 11: "<f8"}


def isRandom(model, folder):
    return bool(RANDOM.search(model)) or ("dropout" in folder.name and "training" in folder.name
                                          and "zero_ratio" not in folder.name)


def typeOf(tensor):
    """Returns the element type and sizes of a TensorProto in the form of a .npy header."""
    kind, sizes = None, []
    for number, value in fields(tensor):
        if number == 1:
            packed, at = value, 0
            while not isinstance(packed, int) and at < len(packed):
                size = shift = 0
                while True:
                    byte = packed[at]
                    at += 1
                    size |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
                sizes.append(size)
            if isinstance(packed, int):
                sizes.append(packed)
        elif number == 2:
            kind = TYPES.get(value, value)
    return kind, tuple(sizes)


def typeOfNpy(array):
    header = ast.literal_eval(array[10 : 10 + int.from_bytes(array[8:10], "little")].decode())
    return header["descr"], header["shape"]


def oneLine(text):
    """Returns the reason in burin's message, with paths removed."""
    lines = [line.strip() for line in text.strip().splitlines() if "cannot import" not in line]
    return re.sub(r"\s+", " ", re.sub(r"model\.onnx:[^ ]*: ", "", " ".join(lines)))[:200]


def runTest(burin, folder):
    """Returns ("passed" | "unsupported" | "failed", reason)."""
    model = folder / "model.onnx"
    proto = model.read_bytes()
    inputs, outputs = signature(proto)
    made = tempfile.TemporaryDirectory() if isRandom(proto, folder) else None
    worst = ("unsupported", "no data")
    for data in sorted(folder.glob("test_data_set_*")):
        files = [data / f"input_{i}.pb" for i in range(len(inputs))]
        given = {name: file for name, file in zip(inputs, files) if file.exists()}
        fixed = {}
        while True:
            command = [burin, "run", model, *TOLERANCES]
            for name, file in given.items():
                command += ["--fix" if name in fixed else "--input", f"{name}=@{file}"]
            for i, name in enumerate(outputs):
                command += (["--output", f"{name}=@{made.name}/{i}.npy"] if made else
                            ["--expect", f"{name}=@{data / f'output_{i}.pb'}"])
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                return "failed", f"took more than {TIMEOUT_SECONDS} s"
            # An input that determines a size must be known when the model is compiled; burin's message names it and the
            # option.
            advice = re.search(r"--fix (\S+)=@FILE", done.stderr)
            if done.returncode != 4 or not advice or advice[1] in fixed or advice[1] not in given:
                break
            fixed[advice[1]] = True
        if done.returncode == 4 or "which burin does not have" in done.stderr:  # for the element type of the data
            return "unsupported", oneLine(done.stderr)
        if done.returncode != 0:
            return "failed", f"exit {done.returncode}: " + oneLine(done.stderr)
        for i, name in enumerate(outputs if made else []):
            want = typeOf((data / f"output_{i}.pb").read_bytes())
            got = typeOfNpy(pathlib.Path(made.name, f"{i}.npy").read_bytes())
            if want != got:
                return "failed", f"{name} is {got} instead of {want}"
        worst = ("passed", "with fixed inputs" if fixed else "")
    return worst


def readList(path):
    listed = {}
    if path and path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, reason = line.partition(": ")
                listed[name] = reason
    return listed


def kindOf(reason):
    """Groups reasons of unsupported tests."""
    if found := re.search(r"of type (\w+), which", reason):
        return f"elements of type {found[1]}"
    if "is a sequence" in reason or "is an optional value" in reason:
        return "sequences and optional values as inputs or outputs"
    if found := re.search(r"ops that burin does not have: ([\w, ]+?) \(", reason):
        return f"the op {found[1]}"
    return reason


def printReasons(results):
    """Prints the number of unsupported tests per reason; a test that exists in two versions counts twice."""
    counts = collections.Counter(kindOf(reason) for outcome, reason in results.values() if outcome == "unsupported")
    for kind, count in counts.most_common():
        print(f"{count:4} {kind}")


class Progress:
    """A progress bar, shown only on a terminal."""

    def __init__(self, total):
        self.total, self.done, self.shown = total, 0, sys.stderr.isatty() and not os.environ.get("NO_COLOR")

    def step(self):
        self.done += 1
        if self.shown:
            filled = 40 * self.done // self.total
            sys.stderr.write(f"\r[{'#' * filled}{' ' * (40 - filled)}] {self.done}/{self.total}")
            if self.done == self.total:
                sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("burin")
    parser.add_argument("sets", nargs="+", metavar="NAME=FOLDER", help="sets of tests, such as 1.22=…/test/data")
    parser.add_argument("--list", type=pathlib.Path, help="the known unsupported tests")
    parser.add_argument("--only", default="", help="regular expression on set/kind/test")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--update", action="store_true", help="write the list anew")
    parser.add_argument("--reasons", action="store_true", help="count the unsupported tests by reason")
    parser.add_argument("--verbose", action="store_true", help="print every test that did not pass")
    arguments = parser.parse_args()

    tests = {}
    for argument in arguments.sets:
        name, _, folder = argument.partition("=")
        for test in sorted(pathlib.Path(folder).glob("*/test_*")):
            path = f"{name}/{test.parent.name}/{test.name}"
            if (test / "model.onnx").exists() and re.search(arguments.only, path):
                tests[path] = test
    if not tests:
        sys.exit("no tests in " + " ".join(arguments.sets))
    progress, results, start = Progress(len(tests)), {}, time.time()

    def one(folder):
        try:
            return runTest(arguments.burin, folder)
        except Exception as problem:  # a test that cannot be read has failed
            return "failed", repr(problem)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = {pool.submit(one, folder): name for name, folder in tests.items()}
        for future in concurrent.futures.as_completed(futures):
            results[futures[future]] = future.result()
            progress.step()

    listed = readList(arguments.list)
    for name, (outcome, _) in results.items():
        if outcome == "failed" and listed.get(name, "").startswith("wrong data"):
            results[name] = "unsupported", listed[name]
    bad = []
    for name, (outcome, reason) in sorted(results.items()):
        isNew = outcome == "failed" or (outcome == "unsupported" and arguments.list and name not in listed)
        if isNew and not arguments.update:
            bad.append(name)
        if isNew or (arguments.verbose and outcome != "passed"):
            print(f"{outcome} {name}: {reason}")
    for kind in sorted({name.rpartition("/")[0] for name in results}):
        counts = [sum(name.rpartition("/")[0] == kind and r[0] == outcome for name, r in results.items())
                  for outcome in ("passed", "unsupported", "failed")]
        fixed = sum(name.rpartition("/")[0] == kind and r == ("passed", "with fixed inputs") for name, r in results.items())
        note = f" ({fixed} with inputs fixed by --fix)" if fixed else ""
        print(f"{kind}: {counts[0]} passed{note}, {counts[1]} unsupported, {counts[2]} failed")
    if arguments.reasons:
        printReasons(results)
    better = [name for name in listed if results.get(name, ("", ""))[0] == "passed"]
    if better and not arguments.update:
        print(f"{len(better)} listed as unsupported pass: take them off the list, or run with --update")
    if arguments.update:
        merged = {name: reason for name, reason in listed.items() if name not in results}
        merged.update({name: r[1] for name, r in results.items() if r[0] == "unsupported"})
        text = "# Tests that burin does not support, each with its reason. Written by tools/dev conformance --update.\n"
        arguments.list.write_text(text + "".join(f"{n}: {r}\n" for n, r in sorted(merged.items())))
    print(f"{time.time() - start:.0f} s")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
