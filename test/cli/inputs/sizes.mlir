func.func @main(%x: tensor<?x4xf32, ["n"]> {burin.name = "x"}) -> (tensor<?xf32, ["n*4"]> {burin.name = "y"}) {
  %0 = burin.exp %x : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":1:1)
  %1 = burin.neg %0 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":2:1)
  %2 = burin.sin %1 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":3:1)
  %3 = burin.exp %2 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":4:1)
  %4 = burin.neg %3 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":5:1)
  %5 = burin.sin %4 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":6:1)
  %6 = burin.exp %5 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":7:1)
  %7 = burin.neg %6 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":8:1)
  %8 = burin.sin %7 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":9:1)
  %9 = burin.exp %8 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":10:1)
  %10 = burin.neg %9 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":11:1)
  %11 = burin.sin %10 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":12:1)
  %12 = burin.exp %11 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":13:1)
  %13 = burin.neg %12 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":14:1)
  %14 = burin.sin %13 : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> loc("sizes.cpp":15:1)
  %flat = burin.reshape %14 {shape = ["n*4"]} : (tensor<?x4xf32, ["n"]>) -> tensor<?xf32, ["n*4"]>
  %ones = burin.full {shape = ["n*4"], value = 1.0 : f64, dtype = f32} : () -> tensor<?xf32, ["n*4"]>
  %y = burin.add %flat, %ones : (tensor<?xf32, ["n*4"]>, tensor<?xf32, ["n*4"]>) -> tensor<?xf32, ["n*4"]>
  return %y : tensor<?xf32, ["n*4"]>
}
