func.func @main(%x: tensor<?xf32, ["n{1..100}*64"]>) -> tensor<?xf32, ["n{1..100}*64"]> {
  %y = burin.relu %x : (tensor<?xf32, ["n{1..100}*64"]>) -> tensor<?xf32, ["n{1..100}*64"]>
  return %y : tensor<?xf32, ["n{1..100}*64"]>
}
