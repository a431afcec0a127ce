// Two functions over one state: a running sum, and its product with a factor.
module {
  burin.state @sum : tensor<3xf32> = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  func.func @add(%x: tensor<3xf32> {burin.name = "x"}, %s: tensor<3xf32> {burin.state = @sum})
      -> (tensor<f32> {burin.name = "total"}, tensor<3xf32> {burin.state = @sum}) {
    %new = burin.add %s, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %total = burin.reduce_sum %new {axes = array<i64: 0>, keepdims = false} : (tensor<3xf32>) -> tensor<f32>
    return %total, %new : tensor<f32>, tensor<3xf32>
  }
  func.func @scaled(%factor: tensor<3xf32> {burin.name = "factor"}, %s: tensor<3xf32> {burin.state = @sum})
      -> (tensor<3xf32> {burin.name = "y"}) {
    %y = burin.mul %s, %factor : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }
}
