#model = loc("model.cpp":4:1)
func.func @main(%x: tensor<?xf32, ["n*2"]> loc(#model)) -> tensor<?xf32, ["n*2"]> {
  %y = burin.relu %x : (tensor<?xf32, ["n*2"]>) -> tensor<?xf32, ["n*2"]> loc("model.cpp":5:1)
  return %y : tensor<?xf32, ["n*2"]>
} loc(#model)
