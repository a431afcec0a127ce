#!/usr/bin/env python3
"""Runs the examples in the definitions of passes and compares docs/passes.md with the output of mlir-tblgen.

passes_page.py --opt BURIN_OPT --tblgen MLIR_TBLGEN --include DIR [--update]. With --update, the graphs after "After:"
and the page are rewritten.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PASSES, PAGE = ROOT / "passes", ROOT / "docs/passes.md"
DEFINITIONS = [PASSES / "Passes.td", *sorted(PASSES.glob("*/Passes.td"))]
EXAMPLE = re.compile(r"( *)(Before(?:, with `(.*?)`)?:)\n *```mlir\n(.*?) *```\n *After:\n *```mlir\n(.*?) *```\n", re.DOTALL)
PASS = re.compile(r'^def (\w+) : Pass<"([\w-]+)".*?^}\n', re.DOTALL | re.MULTILINE)
INTRODUCTION = """# Passes

Made from the `Passes.td` of each [folder](../passes/Passes.td) by `tools/dev docs`; their order, with reasons, is in
[Pipelines.cpp](../passes/Pipelines.cpp). `burin-opt --PASS graph.mlir` runs one of them.

"""


def transformed(opt, argument, options, graph):
    """The functions that a pass makes of those of a graph, as text."""
    result = subprocess.run([opt, f"--{argument}" + (f"={options}" if options else "")], input=graph, text=True, capture_output=True)
    if result.returncode:
        sys.exit(f"{argument}: {result.stderr}")
    # Removes the bytes of large constants, which follow the module.
    lines = re.sub(r"\{-#.*?#-\}", "", result.stdout, flags=re.DOTALL).strip().splitlines()
    if lines[0] == "module {":
        lines = textwrap.dedent("\n".join(lines[1:-1])).splitlines()
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return re.sub(r"dense<\"0x[0-9A-F]{32,}\">", "dense<…>", text)


def withResults(opt, text):
    """Returns Passes.td with the actual result of the pass after each "After:"."""
    def ofPass(definition):
        def ofExample(example):
            indent, heading, options, before, _ = example.groups()
            after = transformed(opt, definition.group(2), options, textwrap.dedent(before))
            body = textwrap.indent(after, indent)
            return f"{indent}{heading}\n{indent}```mlir\n{before}{indent}```\n{indent}After:\n{indent}```mlir\n{body}{indent}```\n"

        if "verify" not in definition.group(2) and not EXAMPLE.search(definition.group()):
            sys.exit(f"{definition.group(1)} has no example before and after")
        return EXAMPLE.sub(ofExample, definition.group())

    return PASS.sub(ofPass, text)


def page(tblgen, include):
    made = subprocess.run([tblgen, "-gen-pass-doc", f"-I{include}", f"-I{ROOT}", PASSES / "Passes.td"], text=True, capture_output=True)
    made.check_returncode()
    body = re.sub(r"<!--.*?-->\n", "", made.stdout)
    return INTRODUCTION + "\n".join(line.rstrip() for line in body.splitlines()).strip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--opt", required=True)
    parser.add_argument("--tblgen", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    old = [path.read_text() for path in DEFINITIONS]
    new = [withResults(args.opt, text) for text in old]
    if args.update:
        for path, text in zip(DEFINITIONS, new):
            path.write_text(text)
        PAGE.write_text(page(args.tblgen, args.include))
        return 0
    errors = []
    if old != new:
        errors.append("a pass makes something else of its example in its Passes.td")
    elif not PAGE.exists() or PAGE.read_text() != page(args.tblgen, args.include):
        errors.append("docs/passes.md is not what the definitions of passes say")
    for error in errors:
        print(f"{error}; run tools/dev docs, and look at the difference", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
