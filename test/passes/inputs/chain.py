"""Prints a graph of so many consecutive elementwise ops."""
import sys

print('func.func @main(%x: tensor<8x128xf32> {burin.name = "x"}) -> (tensor<8x128xf32> {burin.name = "y"}) {')
last = "%x"
for i in range(int(sys.argv[1])):
    print(f"  %v{i} = burin.{('sin', 'tanh')[i % 2]} {last} : (tensor<8x128xf32>) -> tensor<8x128xf32>")
    last = f"%v{i}"
print(f"  return {last} : tensor<8x128xf32>\n}}")
