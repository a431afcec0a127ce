module {
  func.func @main(%x: tensor<?x3xf32, ["b"]> {burin.name = "x"}, %n: tensor<?xf32, ["n"]> {burin.name = "n"}) -> (tensor<?x4xf32, ["n"]> {burin.name = "y"}) {
    %y = burin.reshape %x {shape = ["n", 4]} : (tensor<?x3xf32, ["b"]>) -> tensor<?x4xf32, ["n"]>
    %z = burin.exp %y : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
    return %z : tensor<?x4xf32, ["n"]>
  }
}
