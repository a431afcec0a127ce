"""Checks the innermost loops of assembly code that multiply and add. None may access the stack, and the largest must
contain the whole register tile, with a given number of multiply-adds that load an operand from memory.

usage: check_inner_loops.py FUSED LOADING < kernel.s        FUSED: multiply-adds of the full tile, times the
    steps per loop iteration; LOADING: how many of them load an operand
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
    most = loading = 0
    for body in innermost_loops(lines):
        fused = sum(line.startswith(("vfmadd", "vdpbf16ps")) for line in body)
        if not fused:
            continue
        if fused > most:
            most, loading = fused, sum("{1to" in line for line in body)
        for line in body:
            if re.search(r"[(\[]%?[er]sp", line):
                sys.exit(f"the loop with {fused} multiply-adds uses the stack: {line}")
    if most != int(sys.argv[1]):
        sys.exit(f"the largest inner loop has {most} multiply-adds, not {sys.argv[1]}")
    if loading != int(sys.argv[2]):
        sys.exit(f"of them, {loading} load an element, not {sys.argv[2]}")


main()
