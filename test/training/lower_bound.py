#!/usr/bin/env python3
"""Computes a lower bound of the memory for a graph's intermediate values: the most bytes that are live at one time, in
the order of the kernels. It reads the text of `burin compile --emit kernels`, and shares no code with the planner.

lower_bound.py KERNELS.mlir [INSPECT.json] [--most RATIO] [--align BYTES]

Prints the bound; with the output of `burin inspect --json` also the planned bytes and their ratio, which must be at
most RATIO. With --align each value is rounded up to a multiple of so many bytes, like the buffers of an arena. Results
and operands of a kernel are live together, unless its `in_place` says that a result overwrites an operand. All sizes
must be numbers."""
import argparse
import json
import re
import sys

WIDTHS = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "ui16": 2, "i8": 1, "ui8": 1, "i1": 1}
VIEWS = {"reshape", "squeeze", "unsqueeze", "prefix"}


align = 1


def bytesOf(tensor):
    sizes = tensor.split("x")
    total = WIDTHS[sizes.pop()]
    for size in sizes:
        total *= int(size)
    return -(-total // align) * align


def typesOf(text):
    return [bytesOf(tensor) for tensor in re.findall(r"tensor<([^<>]*)>", text)]


def names(count, name):
    return [name] if count == 1 else [f"{name}#{i}" for i in range(count)]


class Function:
    """The ops of a function as tuples (op, results with their bytes, operands, attributes, callees)."""

    def __init__(self, lines):
        self.arguments = re.findall(r"(%\w+): tensor", lines[0])
        self.ops, self.returned = [], []
        depth = None
        for line in lines[1:]:
            indent = len(line) - len(line.lstrip())
            text = line.strip()
            if depth is not None:  # in the body of a kernel
                if indent == depth and text.startswith("}"):
                    depth = None
                continue
            if text.endswith("{"):
                depth = indent
            if text.startswith("return"):
                self.returned = re.findall(r"%\w+(?:#\d+)?", text.split(":")[0])
            match = re.match(r"(%\w+)(?::(\d+))? = burin\.(\w+)(.*)", text)
            if match:
                self.add(match[1], int(match[2] or 1), match[3], match[4])

    def add(self, name, count, op, rest):
        if op == "constant":
            self.ops.append((op, [(name, 0)], [], [], []))
            return
        head, _, types = rest.partition(" : (")
        results = typesOf(types[types.index(") -> ") + 5:].split(" attributes ")[0]) if ") -> " in types else typesOf(rest)
        if len(results) < count:
            sys.exit(f"lower_bound.py: cannot read the types of {name} = {op}{rest}")
        inPlace = re.search(r"in_place = array<i64: ([^>]*)>", rest)
        states = re.search(r"states = (\d+)", rest)
        operands = re.findall(r"(?:= |[(, ])(%\w+(?:#\d+)?)", re.sub(r"%\w+ = ", "", head) if op == "kernel" else head)
        attributes = {"in_place": [int(i) for i in inPlace[1].split(",")] if inPlace else [],
                      "states": int(states[1]) if states else 0}
        self.ops.append((op, list(zip(names(count, name), results)), operands, attributes, re.findall(r"@(\w+)", head)))

    def bound(self, functions):
        """Returns the maximum of live bytes."""
        root = {}

        def rootOf(name):
            while name in root:
                name = root[name]
            return name

        steps, size, outside = [], {}, set(self.arguments)
        for op, results, operands, attributes, callees in self.ops:
            if op == "constant":
                outside.add(results[0][0])
            elif op in VIEWS:
                root[results[0][0]] = operands[0]
            else:
                for name, count in results:
                    size[name] = count
                # The iterations of a loop write further states after the first one.
                for i in range(attributes["states"]):
                    root[operands[i]] = results[i][0]
                steps.append((results, operands, attributes["in_place"], callees))
        outside |= {rootOf(name) for name in self.returned}
        first, last, over = {}, {}, set()
        for at, (results, operands, inPlace, _) in enumerate(steps):
            for name in [rootOf(o) for o in operands] + [rootOf(name) for name, _ in results]:
                first.setdefault(name, at)
                last[name] = at
            over |= {rootOf(name) for (name, _), i in zip(results, inPlace) if i >= 0}
        change = [0] * (len(steps) + 1)
        for name, at in first.items():
            if name not in outside:
                if at + (name in over) <= last[name]:  # otherwise unused
                    change[at + (name in over)] += size[name]
                    change[last[name] + 1] -= size[name]
        most = live = 0
        for at, (results, _, _, callees) in enumerate(steps):
            live += change[at]
            most = max(most, live + max((functions[callee].bound(functions) for callee in callees), default=0))
        return most


def read(path):
    functions, lines = {}, None
    for line in open(path):
        match = re.match(r"\s*func\.func (?:private )?@(\w+)\(", line)
        if match:
            lines = functions.setdefault(match[1], [])
        if lines is not None:
            lines.append(line.rstrip())
    return {name: Function(lines) for name, lines in functions.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels")
    parser.add_argument("inspect", nargs="?")
    parser.add_argument("--function")
    parser.add_argument("--most", type=float, default=float("inf"))
    parser.add_argument("--align", type=int, default=1)
    args = parser.parse_args()
    global align
    align = args.align
    functions = read(args.kernels)
    name = args.function or next(iter(functions))
    bound = functions[name].bound(functions)
    if not args.inspect:
        print(bound)
        return
    facts = json.load(open(args.inspect))
    planned = facts["memory"]["planned_bytes"]
    if facts["memory"]["weight_bytes"] > facts["bytes"]["weights"]:
        sys.exit("lower_bound.py: the report counts more bytes of weights than the artifact has")
    print(f"planned {planned} bound {bound} ratio {planned / bound:.4f}")
    if planned > bound * args.most:
        sys.exit(f"lower_bound.py: more than {args.most} times the bound was planned")
    if planned < bound:
        sys.exit("lower_bound.py: less than the bound was planned, so the bound is wrong")


if __name__ == "__main__":
    main()
