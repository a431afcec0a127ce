#model = loc("model.cpp":4:1)
func.func @main(%x: tensor<?xf32, ["2*n"]> loc(#model)) -> tensor<?xf32, ["2*n"]> {
  %y = burin.relu %x : (tensor<?xf32, ["2*n"]>) -> tensor<?xf32, ["2*n"]> loc("model.cpp":5:1)
  return %y : tensor<?xf32, ["2*n"]>
} loc(#model)
