#!/usr/bin/env python3
"""Writes the rows of docs/from-pytorch.md as C++ functions beside PyTorch's stored results.

from_pytorch_sources.py <output files …>: the rows are spread over the files."""
import json
import pathlib
import sys

from from_pytorch import INPUTS, STORED, SYMBOLS, rows


def tensorText(value):
    """Formats a tensor as "f32 3 4 : 0.5 1.5 …"."""
    dtype, shape, elements = value
    return f"{dtype} {' '.join(map(str, shape))} : {' '.join(map(str, elements))}"


def literal(text):
    """Formats a C++ string, in pieces within the limits of compilers."""
    return " ".join(json.dumps(text[at:at + 4000], ensure_ascii=False) for at in range(0, len(text), 4000)) or '""'


def inputsSource(stored):
    lines = []
    for name, (dtype, sizes) in INPUTS.items():
        shape = ", ".join(f'Dim("{size}")' if size in SYMBOLS else str(size) for size in sizes)
        lines.append(f'    {{"{name}", {{{dtype if dtype != "bool" else "DType::boolean"}, {{{shape}}}}}, '
                     f"{literal(tensorText(stored['inputs'][name]))}}},\n")
    return "const std::vector<Input> inputs{\n" + "".join(lines) + "};\n"


def rowSource(row, stored):
    line, section, expression, ours = row
    if expression not in stored["results"]:
        raise SystemExit(f"docs/from-pytorch.md:{line}: PyTorch's result is not stored; run test/docs/make_from_pytorch.py")
    kind = "Shapes" if "shapes only" in section else "Eager" if "eager" in section else "Traced"
    names = ", ".join(INPUTS)
    results = ",\n     ".join(literal(tensorText(part)) for part in stored["results"][expression])
    return (f"    {{{line}, {json.dumps(ours)}, Kind::{kind},\n     [](const std::vector<Tensor> &in) {{\n"
            f"       [[maybe_unused]] const auto &[{names}] = nameAll(in);\n       return toList({ours});\n     }},\n"
            f"     {{{results}}}}},\n")


def main():
    stored = json.loads(STORED.read_text())
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    all_rows = list(rows())
    if len(all_rows) < 200:
        raise SystemExit(f"docs/from-pytorch.md has only {len(all_rows)} rows that are expressions")
    each = -(-len(all_rows) // len(files))
    for part, path in enumerate(files):
        text = "// Generated from docs/from-pytorch.md.\n#include \"test/docs/FromPytorch.h\"\n\n"
        if part == 0:
            text += inputsSource(stored)
        text += f"\nstatic const std::vector<Row> rows{{\n"
        text += "".join(rowSource(row, stored) for row in all_rows[part * each:(part + 1) * each])
        text += f'}};\n\nTEST_CASE("Rows of docs/from-pytorch.md, part {part + 1}") {{ checkRows(rows); }}\n'
        path.write_text(text)


if __name__ == "__main__":
    main()
