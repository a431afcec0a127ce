// Of an even n: halves of rows, and what is left of rows when each second element is repeated. Sizes have several names.
func.func @main(%x: tensor<3x?xf32, ["n"]>) -> (tensor<6x?xf32, ["floordiv(n + 1, 2)"]>, tensor<3x?xf32, ["n"]>)
    attributes {burin.checks = [["floordiv(n + 1, 2)", "floordiv(min(1, n) + n + 1, 2) - min(1, n)", "halves.cpp:3"],
                                ["floordiv(n + 1, 2)*2", "n", "halves.cpp:4"]]} {
  %even = burin.slice %x {starts = [0, 0], steps = array<i64: 1, 2>, stops = [3, "n"]}
    : (tensor<3x?xf32, ["n"]>) -> tensor<3x?xf32, ["floordiv(n + 1, 2)"]>
  %odd = burin.slice %x {starts = [0, "min(1, n)"], steps = array<i64: 1, 2>, stops = [3, "n"]}
    : (tensor<3x?xf32, ["n"]>) -> tensor<3x?xf32, ["floordiv(min(1, n) + n + 1, 2) - min(1, n)"]>
  %same = burin.reshape %odd {shape = [3, "floordiv(n + 1, 2)"]}
    : (tensor<3x?xf32, ["floordiv(min(1, n) + n + 1, 2) - min(1, n)"]>) -> tensor<3x?xf32, ["floordiv(n + 1, 2)"]>
  %both = burin.concat %even, %same {axis = 0 : i64}
    : (tensor<3x?xf32, ["floordiv(n + 1, 2)"]>, tensor<3x?xf32, ["floordiv(n + 1, 2)"]>) -> tensor<6x?xf32, ["floordiv(n + 1, 2)"]>
  %parted = burin.reshape %even {shape = [3, "floordiv(n + 1, 2)", 1]}
    : (tensor<3x?xf32, ["floordiv(n + 1, 2)"]>) -> tensor<3x?x1xf32, ["floordiv(n + 1, 2)"]>
  %twice = burin.broadcast_to %parted {shape = [3, "floordiv(n + 1, 2)", 2]}
    : (tensor<3x?x1xf32, ["floordiv(n + 1, 2)"]>) -> tensor<3x?x2xf32, ["floordiv(n + 1, 2)"]>
  %rows = burin.reshape %twice {shape = [3, "n"]} : (tensor<3x?x2xf32, ["floordiv(n + 1, 2)"]>) -> tensor<3x?xf32, ["n"]>
  %left = burin.sub %x, %rows : (tensor<3x?xf32, ["n"]>, tensor<3x?xf32, ["n"]>) -> tensor<3x?xf32, ["n"]>
  return %both, %left : tensor<6x?xf32, ["floordiv(n + 1, 2)"]>, tensor<3x?xf32, ["n"]>
}
