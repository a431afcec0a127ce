"""Prints a given number of nested modules."""
import sys

depth = int(sys.argv[1])
print("module {" * depth + "}" * depth)
