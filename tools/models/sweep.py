#!/usr/bin/env python3
"""Compiles many small architectures as PyTorch's two exporters write them, with every size dynamic, and again as ONNX
Runtime's offline optimiser rewrites them; the models of catalog.py likewise; the models in packages of PyPI
(packages.py); and estimators of scikit-learn and LightGBM (classical.py). Compares results with ONNX Runtime at three
combinations of sizes each. Run by `tools/dev models --sweep`.

Every variant of every model ends in one state, and all are counted:
  agrees     at all sizes that ONNX Runtime runs
  DIFFERS    another result, or a refusal at run time
  REFUSED    burin compile fails
  TOO SLOW   burin compile takes more than a minute
  CRASHED    the comparing process died or hung
  export     the exporter fails: no file
  peer       ONNX Runtime does not load the file, or runs it at none of the sizes
The exit code is 1 if any variant is in a state in capital letters. States are stored with the build of burin that they
were measured with, so that an interrupted sweep can continue."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import sys
import warnings

from sweeps.comparison import Rule, call, compileAndCompare
from sweeps.variants import EXPORTS, OPTIMISED, VARIANTS, WRONG, firstLines, isPackaged, variantsOf

HERE = pathlib.Path(__file__).resolve().parent
EXPORT_SECONDS, MODEL_SECONDS = 1200, 1800


# ---- in a separate process per model: exporting

def fuseAttention(module):
    """Makes the old exporter write attention as one op, which it supports only at newer opsets."""
    model = getattr(module, "model", None)
    if getattr(model, "_supports_sdpa", False):
        model.set_attn_implementation("sdpa")


def exportOne(model, module, variant, path):
    """Exports, traced at sizes other than 0 and 1."""
    import export
    import torch
    inputs = export.inputsOf(model, next((s for s in reversed(model.sizes) if min(s.values()) > 1), model.sizes[-1]))
    with torch.inference_mode():
        results = export.asTuple(module(*inputs))
    names = list(model.inputs)
    options = dict(input_names=names, output_names=export.outputNames(len(results)), dynamo=variant == "new")
    axes = {name: value.dynamicAxes() for name, value in model.inputs.items()}
    if variant == "new":
        fuseAttention(module)
        open_ = [{axis: torch.export.Dim.DYNAMIC for axis in axes[name]} for name in names]
        options |= dict(dynamic_shapes=export.shapesFor(module, open_), external_data=False, verbose=False)
    else:
        options |= dict(dynamic_axes=axes, opset_version=int(variant[3:]))
    torch.onnx.export(module, inputs, str(path), **options)


def optimise(source, path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def exportAll(name, folder):
    """Writes VARIANT.onnx for each variant, or VARIANT.failed with the reason."""
    import export
    warnings.filterwarnings("ignore")
    model = find(name)
    module = export.load(model)
    for variant in EXPORTS:
        for target in (variant, variant + OPTIMISED):
            path, failed = folder / (target + ".onnx"), folder / (target + ".failed")
            if path.exists() or failed.exists():
                continue
            partial = folder / "partial.onnx"
            try:
                if target == variant:
                    exportOne(model, module, variant, partial)
                else:
                    optimise(folder / (variant + ".onnx"), partial)
                os.replace(partial, path)
            except Exception as problem:
                while problem.__cause__:
                    problem = problem.__cause__
                failed.write_text(f"{type(problem).__name__}: {problem}")


# ---- comparing

def check(options, onnx, inputsBySize, rule):
    source, failed = onnx.with_stem(onnx.stem.removesuffix(OPTIMISED)), onnx.with_suffix(".failed")
    if not source.exists():
        return "export", source.with_suffix(".failed").read_text()
    if failed.exists():
        return "peer", failed.read_text()
    return compileAndCompare(options, onnx, inputsBySize, rule, onnx.with_suffix(".plate"))


def inputsOf(model):
    from networks import catalog
    return {catalog.labelOf(sizes): {name: value.make(name, sizes).numpy() for name, value in model.inputs.items()}
            for sizes in model.sizes}


def exactOf(model):
    """Returns a function from inputs to PyTorch's outputs in f64. It loads the module at its first call."""
    import functools

    @functools.cache
    def module():
        import export
        return export.load(model).double()

    def exact(inputs):
        import export
        import torch
        tensors = [torch.from_numpy(inputs[name]) for name in model.inputs]
        wide = [x.double() if x.is_floating_point() else x for x in tensors]
        with torch.inference_mode():
            return [y.numpy() for y in torch.utils._pytree.tree_leaves(module()(*wide))]
    return exact


# ---- in a separate process per model: comparing

class States:
    """{variant: [state, detail]} of a model, stored in its folder with the build of burin that they were measured
    with."""

    def __init__(self, options, folder):
        self.file, self.build = folder / "states.json", options.identity
        kept = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.isOlder = bool(kept) and kept["build"] != self.build
        self.values = kept["states"] if kept and (options.kept or not self.isOlder) else {}

    def set(self, variant, state):
        self.values[variant] = state
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps({"build": self.build, "states": self.values}, indent=1))
        os.replace(partial, self.file)


def checkVariants(options, name):
    """Checks the variants of one model that have no state yet."""
    folder = options.data / name
    states = States(options, folder)
    if isPackaged(name):
        from sweeps import classical, packages
        source = classical if name.startswith(classical.PREFIX) else packages
        return states.set("file", source.check(options, name))
    model = find(name)
    inputs, rule = inputsOf(model), Rule(model.tolerance, chooses=model.chooses, exact=exactOf(model))
    for variant in VARIANTS:
        if variant not in states.values:
            states.set(variant, check(options, folder / (variant + ".onnx"), inputs, rule))


def exportInProcess(options, name):
    """Exports one model in a child process. Every variant without a file gets a .failed file with the reason."""
    folder = options.data / name
    folder.mkdir(parents=True, exist_ok=True)
    if isPackaged(name):
        return
    code, text = call([sys.executable, HERE / "sweep.py", "--data", options.data, "--export", name], EXPORT_SECONDS)
    for variant in VARIANTS if code != 0 else ():
        failed = folder / (variant + ".failed")
        if not failed.exists() and not (folder / (variant + ".onnx")).exists():
            failed.write_text(text or f"takes more than {EXPORT_SECONDS} s")


def checkModel(options, name):
    """Returns the states of one model. If a checking process dies, the variant that it was checking is marked CRASHED,
    and a new process continues with the next."""
    folder = options.data / name
    exportInProcess(options, name)
    while missing := [v for v in variantsOf(name) if v not in States(options, folder).values]:
        code, text = call([sys.executable, HERE / "sweep.py", "--data", options.data, "--build", options.build,
                           "--check", name], MODEL_SECONDS)
        states = States(options, folder)
        if code != 0 and (left := [v for v in missing if v not in states.values]):
            states.set(left[0], ("CRASHED", text))
    return States(options, folder).values


# ---- the report

def report(name, results):
    for variant, (state, detail) in results.items():
        print(f"{name:24} {variant:10} {state:9} {firstLines(detail)}", flush=True)


def countsOf(all_):
    return collections.Counter(state for results in all_.values() for state, _ in results.values())


def summary(all_):
    """Prints the counts; returns whether no state is wrong."""
    counts = countsOf(all_)
    print(f"\n{len(all_)} models, {sum(counts.values())} variants: "
          + ", ".join(f"{count} {state}" for state, count in counts.most_common()))
    return not any(counts[state] for state in WRONG)


def allModels():
    from networks import architectures
    from networks import catalog
    return architectures.MODELS + catalog.MODELS


def find(name):
    return next(m for m in allModels() if m.name == name)


def identity(build):
    """Returns a hash of the tested programs."""
    return hashlib.sha256(b"".join((build / "bin" / name).read_bytes() for name in ("burin", "burin-run"))).hexdigest()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(".build/release"))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(".build/models/sweep"))
    parser.add_argument("--filter", action="append", help="only models that match this regular expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="models at once (default: one per core)")
    parser.add_argument("--list", action="store_true", help="print the names of the models")
    parser.add_argument("--docs", action="store_true", help="write docs/sweep.md")
    parser.add_argument("--export-only", action="store_true", help="write the ONNX files and stop")
    parser.add_argument("--kept", action="store_true", help="compile nothing, report what is kept, of other builds too")
    parser.add_argument("--export", help=argparse.SUPPRESS)
    parser.add_argument("--check", help=argparse.SUPPRESS)
    return parser.parse_args()


def inTurn(options, check, names):
    """Returns {name: states}; prints each as it becomes available."""
    all_ = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(check, options, name): name for name in names}
        for done in concurrent.futures.as_completed(waiting):
            all_[waiting[done]] = done.result()
            report(waiting[done], done.result())
    return {name: all_[name] for name in names}


def exported(options, name):
    """Exports a model, and returns which variants have a file."""
    exportInProcess(options, name)
    return {v: ("written" if (options.data / name / (v + ".onnx")).exists() else "export", "") for v in VARIANTS}


def main():
    from sweeps import classical, packages
    options = parse()
    if options.export:
        return exportAll(options.export, options.data / options.export)
    wanted = lambda name: not options.filter or any(re.search(f, name) for f in options.filter)
    names = [m.name for m in allModels() if wanted(m.name)]
    if options.list:
        return print(*names, sep="\n")
    if options.export_only:
        return inTurn(options, exported, names)
    options.identity = identity(options.build)
    if options.check:
        return checkVariants(options, options.check)
    names += [name for name in [*packages.download(), *classical.names()] if wanted(name)]
    kept = lambda options, name: States(options, options.data / name).values
    all_ = inTurn(options, kept if options.kept else checkModel, names)
    if options.docs:
        from sweeps import sweep_page
        older = [name for name in names if States(options, options.data / name).isOlder]
        sweep_page.write(all_, older, HERE.parent.parent / "docs/sweep.md")
    sys.exit(0 if summary(all_) else 1)


if __name__ == "__main__":
    main()
