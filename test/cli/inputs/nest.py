"""Prints modules inside modules, as many as asked for."""
import sys

depth = int(sys.argv[1])
print("module {" * depth + "}" * depth)
