"""Prints a graph that repeatedly concatenates a value with itself."""
import sys

times = int(sys.argv[1])
last = f"tensor<{2 ** times}xi8>"
print(f"func.func @main(%v0: tensor<1xi8>) -> {last} {{")
for i in range(times):
    half, whole = f"tensor<{2 ** i}xi8>", f"tensor<{2 ** (i + 1)}xi8>"
    print(f"  %v{i + 1} = burin.concat %v{i}, %v{i} {{axis = 0 : i64}} : ({half}, {half}) -> {whole}")
print(f"  return %v{times} : {last}")
print("}")
