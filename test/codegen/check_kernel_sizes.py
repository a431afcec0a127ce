"""Checks the table of `burin compile --time-kernels`: that there are enough kernels, and the most instructions that LLVM's
passes leave of one.

usage: check_kernel_sizes.py MOST LEAST_KERNELS < table"""
import re
import sys

sizes = [int(m[1]) for line in sys.stdin if (m := re.match(r"\s*[\d.]+\s+[\d.]+\s+[\d.]+\s+\d+\s+(\d+)  kernel", line))]
print(sizes)
if len(sizes) < int(sys.argv[2]):
    sys.exit(f"{len(sizes)} kernels, fewer than {sys.argv[2]}")
if max(sizes) > int(sys.argv[1]):
    sys.exit(f"the largest kernel has {max(sizes)} instructions, more than {sys.argv[1]}")
