#!/usr/bin/env python3
"""Runs the examples in the definitions of passes and compares docs/passes.md with the output of mlir-tblgen.

passes_page.py --opt BURIN_OPT --tblgen MLIR_TBLGEN --include DIR [--update]. With --update, the graphs after "After:",
the errors after "Error:" and the page are rewritten.
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
CHECK = re.compile(r"( *)Accepted:\n *```mlir\n(.*?) *```\n *(Refused, [^\n]*:)\n *```mlir\n(.*?) *```\n *Error:\n *```\n(.*?) *```\n",
                   re.DOTALL)
PASS = re.compile(r'^def (\w+) : Pass<"([\w-]+)".*?^}\n', re.DOTALL | re.MULTILINE)
INTRODUCTION = """# Passes

Made from the `Passes.td` of each [folder](../passes/Passes.td) by `tools/dev docs`; their order, with reasons, is in
[Pipelines.cpp](../passes/Pipelines.cpp). `burin-opt --PASS graph.mlir` runs one of them.

"""


def run(opt, argument, options, graph):
    """Runs one pass on a graph."""
    return subprocess.run([opt, f"--{argument}" + (f"={options}" if options else "")], input=graph, text=True, capture_output=True)


def transformed(opt, argument, options, graph):
    """The functions that a pass makes of those of a graph, as text."""
    result = run(opt, argument, options, graph)
    if result.returncode:
        sys.exit(f"{argument}: {result.stderr}")
    # Removes the bytes of large constants, which follow the module.
    lines = re.sub(r"\{-#.*?#-\}", "", result.stdout, flags=re.DOTALL).strip().splitlines()
    if lines[0] == "module {":
        lines = textwrap.dedent("\n".join(lines[1:-1])).splitlines()
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return re.sub(r"dense<\"0x[0-9A-F]{32,}\">", "dense<…>", text)


def refusal(opt, argument, graph):
    """The errors of a verifier, which must refuse the graph."""
    result = run(opt, argument, None, graph)
    errors = re.findall(r"error: (.*)", result.stderr)
    if not result.returncode or not errors:
        sys.exit(f"{argument} accepts the graph after \"Refused\"")
    return "".join(f"error: {error}\n" for error in errors)


def withResults(opt, text):
    """Returns Passes.td with the actual result of the pass after each "After:" and "Error:"."""
    def ofPass(definition):
        def ofCheck(example):
            indent, good, why, bad, _ = example.groups()
            transformed(opt, definition.group(2), None, textwrap.dedent(good))
            errors = textwrap.indent(refusal(opt, definition.group(2), textwrap.dedent(bad)), indent)
            return (f"{indent}Accepted:\n{indent}```mlir\n{good}{indent}```\n{indent}{why}\n{indent}```mlir\n{bad}{indent}```\n"
                    f"{indent}Error:\n{indent}```\n{errors}{indent}```\n")

        def ofExample(example):
            indent, heading, options, before, _ = example.groups()
            after = transformed(opt, definition.group(2), options, textwrap.dedent(before))
            body = textwrap.indent(after, indent)
            return f"{indent}{heading}\n{indent}```mlir\n{before}{indent}```\n{indent}After:\n{indent}```mlir\n{body}{indent}```\n"

        isVerifier = "verify" in definition.group(2)
        if not (CHECK if isVerifier else EXAMPLE).search(definition.group()):
            sys.exit(f"{definition.group(1)} has no example, of graphs that it accepts and refuses" if isVerifier
                     else f"{definition.group(1)} has no example before and after")
        return CHECK.sub(ofCheck, EXAMPLE.sub(ofExample, definition.group()))

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
