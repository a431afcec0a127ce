// A running sum of numbers that must not be negative.
module {
  burin.state @sum : tensor<f32> = dense<0.0> : tensor<f32>
  func.func @add(%x: tensor<f32> {burin.name = "x"}, %s: tensor<f32> {burin.state = @sum})
      -> (tensor<f32> {burin.name = "total"}, tensor<f32> {burin.state = @sum}) {
    %zero = burin.constant dense<0.0> : tensor<f32>
    %holds = burin.ge %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %checked = burin.check %holds, %x {message = "x is negative"} : (tensor<i1>, tensor<f32>) -> tensor<f32>
    %new = burin.add %s, %checked : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %new, %new : tensor<f32>, tensor<f32>
  }
}
