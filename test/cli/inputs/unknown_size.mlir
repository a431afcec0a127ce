#model = loc("model.cpp":4:1)
func.func @main(%x: tensor<?xf32, ["n*n"]> loc(#model)) -> tensor<?xf32, ["n*n"]> {
  %y = burin.relu %x : (tensor<?xf32, ["n*n"]>) -> tensor<?xf32, ["n*n"]> loc("model.cpp":5:1)
  return %y : tensor<?xf32, ["n*n"]>
} loc(#model)
