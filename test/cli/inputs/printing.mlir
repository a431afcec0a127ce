// Prints, a loop that prints, and a call of a C++ function of the process that traced it, which has ended.
module {
  func.func @main(%x: tensor<?xf32, ["n"]> {burin.name = "x"}) -> (tensor<?xf32, ["n"]> {burin.name = "y"}) {
    burin.debug_print "given"(%x) : tensor<?xf32, ["n"]> loc("model.cpp":4:1)
    %i = burin.constant dense<0> : tensor<i64>
    %last = burin.while @below, @turn(%i) {carried = 1 : i64} : (tensor<i64>) -> tensor<i64>
    %y = burin.add %x, %x : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    burin.debug_print ""(%y) : tensor<?xf32, ["n"]>
    return %y : tensor<?xf32, ["n"]>
  }
  func.func private @below(%i: tensor<i64>) -> tensor<i1> {
    %two = burin.constant dense<2> : tensor<i64>
    %0 = burin.lt %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @turn(%i: tensor<i64>) -> tensor<i64> {
    burin.debug_print "turn"(%i) : tensor<i64> loc("model.cpp":8:1)
    %one = burin.constant dense<1> : tensor<i64>
    %next = burin.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    return %next : tensor<i64>
  }
}
