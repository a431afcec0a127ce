"""The table of `tools/dev models`, on the terminal and in docs/models.md."""
import statistics
import subprocess
import time

from networks import catalog

PEERS = ("burin", "onnxruntime", "torch")
HEADING = (f"{'model':20} {'variant':14} {'exporter':12} {'compile':>8} {'memory':>8} {'artifact':>9}  "
           f"{'to ORT':>7} {'to f64':>7}  latency in ms: burin, ONNX Runtime, PyTorch")


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


def worst(row, key):
    return max(run[key] for run in row["runs"])


def milliseconds(us):
    return f"{us / 1e3:.3g}" if us < 1e6 else f"{us / 1e3:.0f}"


def latencies(run):
    return [" / ".join(milliseconds(times[peer]) for times in run["latency"]) for peer in PEERS]


def summary(results, threads):
    """Compares burin with the faster peer, per number of threads."""
    for place, count in enumerate(threads):
        ratios = []
        for name, rows in results.items():
            for row in rows:
                for run in row["runs"]:
                    times = run["latency"][place]
                    ratios.append((min(times[peer] for peer in PEERS[1:]) / times["burin"],
                                   f"{name} {row['variant'].split('-')[0]} {sizesText(run['sizes'])}"))
        if not ratios:
            return
        behind = ", ".join(f"{name} ({ratio:.2f})" for ratio, name in sorted(ratios) if ratio < 1)
        mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
        yield (f"{count} thread{'s' * (count > 1)}: the faster peer takes {mean:.2f} times burin's time (geometric mean of "
               f"{len(ratios)} rows); it is ahead in: {behind or 'none'}.")


def line(model, row):
    times = "; ".join(f"{catalog.labelOf(run['sizes'])} {' '.join(latencies(run))}"
                      for run in row["runs"] if "latency" in run)
    return (f"{model.name:20} {row['variant']:14} {row['exporter']:12} {row['compile']['seconds']:6.1f} s "
            f"{megabytes(row['compile']['memory']):>8} {megabytes(row['compile']['size']):>9}  "
            f"{worst(row, 'difference'):7.0e} {worst(row, 'error'):7.0e}  {times}")


# ---- docs/models.md

ABOUT = """# Models

`tools/dev models` exports these architectures from PyTorch to ONNX, compiles each with `burin compile`, runs the artifact
with `burin-run`, and compares with ONNX Runtime and with PyTorch in f64. It generates this page, and fails on a wrong result, an
error or a slow compile. `--filter resnet` selects models; `--quick` skips latencies.

- Each model has a *static* variant with fixed sizes, and a *dynamic* one with symbolic sizes: one artifact, run at the
  sizes in its rows. Both of PyTorch's exporters are used, *dynamo* and *torchscript*.
- Weights are random with a fixed seed, and scaled so that every part of a model affects the result; batch normalisations
  are calibrated.
- *to ORT* is the largest difference between burin's and ONNX Runtime's output, relative to the largest value of that
  output; at most {tolerance:.0e} is accepted{exceptions}. *to f64* is the same against PyTorch in f64, followed by that of ONNX
  Runtime in parentheses.
- *compile* is the time of `burin compile` and its peak memory: at most {seconds} s and {memory:.0f} GB are
  accepted. It includes reading the model and writing the artifact.
- Latencies are milliseconds per call on {threads}, medians of five turns of 0.3 seconds of calls each: burin, ONNX
  Runtime, PyTorch (eager, images channels-last).
"""


def table(header, rows):
    return "\n".join(["| " + " | ".join(header) + " |", "|" + "---|" * len(header),
                      *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def sizesText(sizes):
    return ", ".join(f"{name} {size}" for name, size in sizes.items())


def tableRows(model, rows):
    name = model.name
    for row in rows:
        facts = [row["variant"].split("-")[0], row["exporter"],
                 f"{row['compile']['seconds']:.1f} s, {megabytes(row['compile']['memory'])}",
                 megabytes(row["compile"]["size"])]
        for run in row["runs"]:
            errors = [f"{run['difference']:.0e}", f"{run['error']:.0e} ({run['peerError']:.0e})"]
            yield [name, *facts, sizesText(run["sizes"]), *errors, *latencies(run)]
            name, facts = "", [""] * 4


def symbolicCost(model, rows):
    """Compares the latency of the dynamic artifact with that of static ones of the same sizes."""
    times = {(row["variant"] == "dynamic", str(run["sizes"])): run["latency"][0]["burin"]
             for row in rows for run in row["runs"]}
    for sizes in model.sizes:
        static, dynamic = times[False, str(sizes)], times[True, str(sizes)]
        yield [sizesText(sizes), milliseconds(static), milliseconds(dynamic), f"{100 * (dynamic / static - 1):+.1f} %"]


def whenAndWhat():
    """Returns the date and the commit of the sources, from which the command has built burin."""
    git = lambda *words: subprocess.run(["git", *words], capture_output=True, text=True).stdout.strip()
    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return f"{time.strftime('%Y-%m-%d')} at {git('rev-parse', '--short', 'HEAD')}{changed}"


def write(results, path, measured, threads, limits):
    """Writes the page. `results` maps models to rows; `measured` says when, and from which sources; latencies are for
    these numbers of threads."""
    loose = [f"{m.name} ({m.tolerance:.0e})" for m in catalog.MODELS if m.tolerance > 1e-4]
    threadsText = "one thread" if threads == [1] else " / ".join(map(str, threads)) + " threads"
    text = ABOUT.format(tolerance=1e-4, seconds=limits[0], memory=limits[1] / 1e9, threads=threadsText,
                        exceptions=", for " + " and ".join(loose) if loose else "")
    text += f"\nMeasured {', '.join(measured)}; {processor()}; {versions()}.\n\n"
    header = ["model", "variant", "exporter", "compile", "artifact", "sizes", "to ORT", "to f64", "burin", "ORT",
              "PyTorch"]
    text += table(header, [line for m in catalog.MODELS for line in tableRows(m, results.get(m.name, []))])
    text += "\n" + "".join(f"- {line}\n" for line in summary(results, threads))
    missing = [m.name for m in catalog.MODELS if m.name not in results]
    if missing:
        text += f"\nNot measured yet: {', '.join(missing)}.\n"
    for model in catalog.MODELS:
        if model.everyStatic and model.name in results:
            text += f"\n## Latency of the dynamic {model.name} and of static ones, ms\n"
            text += table(["sizes", "static", "dynamic", "difference"], symbolicCost(model, results[model.name]))
    path.write_text(text)


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")


def versions():
    from importlib.metadata import version
    names = ("torch", "torchvision", "transformers", "onnxscript", "onnxruntime")
    return ", ".join(f"{name} {version(name)}" for name in names)
