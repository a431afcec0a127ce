"""Writes docs/sweep.md: the counts, the variants that are wrong or could not be compared, and the models that agree."""
import collections

import report
from variants import WRONG, firstLines, variantsOf

ABOUT = """# Sweep

`tools/dev models --sweep --docs` wrote this page. It exports small models of many architectures with random weights, every
size dynamic, by PyTorch's old exporter at opsets 11, 13 and 17 and by the new one; has ONNX Runtime's offline optimiser
rewrite each file (level extended, which brings in its own operators: *+ort*); takes trained models from packages of PyPI;
and for each file runs `burin compile` and compares with ONNX Runtime at three combinations of sizes.

| state | meaning |
|---|---|
| agrees | at all sizes that ONNX Runtime runs, within 1e-4 of the largest number of an output (a few trained models: see `packages.py`); or else, for exports, with an error against PyTorch in f64 of at most four times ONNX Runtime's |
| DIFFERS | another result, or a refusal at run time |
| REFUSED | `burin compile` refuses the file |
| TOO SLOW | `burin compile` takes more than a minute |
| CRASHED | the comparing process died |
| export | PyTorch's exporter makes no file |
| peer | ONNX Runtime does not load the file, or does not run it at any of the sizes |
"""


def counts(all_):
    """Rows: a variant and its counts."""
    variants = collections.defaultdict(collections.Counter)
    for states in all_.values():
        for variant, (state, _) in states.items():
            variants[variant][state] += 1
    found = [s for s in ("agrees", *WRONG, "export", "peer") if any(c[s] for c in variants.values())]
    total = sum(variants.values(), collections.Counter())
    rows = [[label, *(str(c[s]) for s in found)] for label, c in [*variants.items(), ("**all**", total)]]
    return report.table(["variant", *found], rows)


def grouped(all_, states):
    """Yields a row per model and reason, for the variants in one of `states`."""
    for name, results in all_.items():
        reasons = collections.defaultdict(list)
        for variant, (state, detail) in results.items():
            if state in states:
                reasons[state, firstLines(detail, 2).replace("|", "\\|")[:300]].append(variant)
        for (state, reason), variants in reasons.items():
            yield [name, " ".join(variants), state, reason]


def write(all_, older, path):
    """Writes the page of the models whose variants all have a state. Models without, and those in `older` that were
    measured with other builds, are listed."""
    missing = [name for name, states in all_.items() if len(states) < len(variantsOf(name))]
    all_ = {name: states for name, states in all_.items() if name not in missing}
    models, files = len(all_), sum(map(len, all_.values()))
    text = ABOUT + f"\nMeasured {report.whenAndWhat()}; {report.versions()}. {models} models, {files} variants.\n\n"
    text += counts(all_)
    for title, states in (("What is not right", WRONG), ("What could not be compared", ("export", "peer"))):
        if rows := list(grouped(all_, states)):
            text += f"\n## {title}\n" + report.table(["model", "variants", "state", "reason"], rows)
    agreeing = [name for name, results in all_.items() if all(state == "agrees" for state, _ in results.values())]
    text += f"\n## All variants agree\n{', '.join(agreeing)}.\n"
    if older:
        text += f"\n## Measured with an earlier build\n{', '.join(older)}.\n"
    if missing:
        text += f"\n## Not measured\n{', '.join(missing)}.\n"
    path.write_text(text)
