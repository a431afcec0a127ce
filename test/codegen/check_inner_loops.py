"""Reads assembly and checks its innermost loops that multiply and add: none may touch the stack, and the largest must
hold the whole register tile.

usage: check_inner_loops.py FUSED < kernel.s        FUSED: multiply-adds of a step of the full tile
"""

import re
import sys


def innermost_loops(lines):
    labels = {line[:-1]: i for i, line in enumerate(lines) if re.fullmatch(r"\.?L\w+:", line)}
    loops = []
    for i, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\.?L\w+)", line)
        if jump and labels.get(jump[1], i) < i:
            loops.append((labels[jump[1]], i))
    for begin, end in loops:
        if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in loops):
            yield lines[begin : end + 1]


def main():
    lines = [line.split("#")[0].strip() for line in sys.stdin]
    most = 0
    for body in innermost_loops(lines):
        fused = sum(line.startswith("vfmadd") for line in body)
        if not fused:
            continue
        most = max(most, fused)
        for line in body:
            if re.search(r"[(\[]%?[er]sp", line):
                sys.exit(f"the loop with {fused} multiply-adds uses the stack: {line}")
    if most != int(sys.argv[1]):
        sys.exit(f"the largest inner loop has {most} multiply-adds, not {sys.argv[1]}")


main()
