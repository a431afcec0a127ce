func.func @main(%x: tensor<?xf32, ["n"]> {burin.name = "x"}, %y: tensor<?xf32, ["m"]> {burin.name = "y"}) -> (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) {
  %a = burin.relu %x : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %b = burin.relu %y : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
  return %a, %b : tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>
}
