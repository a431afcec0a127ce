// RUN: burin-opt %s --split-input-file --verify-diagnostics

func.func @elementType(%x: tensor<2xf32>, %y: tensor<2xf16>) {
  // expected-error @+1 {{x f32[2] and y f16[2] must both be f32; cast them}}
  %0 = "burin.add"(%x, %y) : (tensor<2xf32>, tensor<2xf16>) -> tensor<2xf32>
  return
}

// -----

func.func @implicitBroadcast(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{y f32[3] must have the shape [2, 3] of the result; use broadcast_to}}
  %0 = burin.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resultType(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{must have the result type 'tensor<2x4xf32>', not 'tensor<2x3xf32>'}}
  %0 = burin.matmul %x, %y : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @innerSizes(%x: tensor<4x8xf32>, %y: tensor<16x8xf32>) {
  // expected-error @+1 {{lhs has 8 columns but rhs has 16 rows; transpose rhs}}
  %0 = burin.matmul %x, %y : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @symbolicResult(%x: tensor<?xf32, ["b"]>) {
  // expected-error @+1 {{must have the result type 'tensor<?xf32, ["b"]>', not 'tensor<?xf32, ["n"]>'}}
  %0 = burin.exp %x : (tensor<?xf32, ["b"]>) -> tensor<?xf32, ["n"]>
  return
}

// -----

func.func @unnamedSize(%x: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 of type 'tensor<?xf32>' has 1 unknown sizes `?` but 0 expressions for them; name each}}
  %0 = burin.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @tooManyNames(%x: tensor<?xf32, ["a", "b"]>) {
  // expected-error @+1 {{has 1 unknown sizes `?` but 2 expressions}}
  %0 = burin.exp %x : (tensor<?xf32, ["a", "b"]>) -> tensor<?xf32, ["a", "b"]>
  return
}

// -----

func.func @normalForm(%x: tensor<?xf32, ["1 + b"]>) {
  // expected-error @+1 {{not an expression over symbols in normal form; write "b + 1"}}
  %0 = burin.exp %x : (tensor<?xf32, ["1 + b"]>) -> tensor<?xf32, ["1 + b"]>
  return
}

// -----

func.func @knownSize(%x: tensor<?xf32, ["2*2"]>) {
  // expected-error @+1 {{write the number 4 into the shape}}
  %0 = burin.exp %x : (tensor<?xf32, ["2*2"]>) -> tensor<?xf32, ["2*2"]>
  return
}

// -----

func.func @garbageSize(%x: tensor<?xf32, ["b +"]>) {
  // expected-error @+1 {{the size "b +" in the encoding is not an expression over symbols}}
  %0 = burin.exp %x : (tensor<?xf32, ["b +"]>) -> tensor<?xf32, ["b +"]>
  return
}

// -----

func.func @unsupportedElement(%x: tensor<2xi7>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of}}
  %0 = burin.neg %x : (tensor<2xi7>) -> tensor<2xi7>
  return
}

// -----

func.func @domain(%x: tensor<2xf32>) {
  // expected-error @+1 {{this takes integers or bool; cast to an integer type}}
  %0 = burin.bitwise_not %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @canonicalAxis(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{axis must be written in its canonical form here: axis = 1}}
  %0 = burin.softmax %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @axisRange(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{axes 5 is out of range; there are 2 dimensions: -2 … 1}}
  %0 = burin.reduce_sum %x {axes = array<i64: 5>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reshapeCount(%x: tensor<?x3xf32, ["b"]>) {
  // expected-error @+1 {{has b*3 elements, which do not fill the shape [b*3 + 1]}}
  %0 = burin.reshape %x {shape = ["b*3 + 1"]} : (tensor<?x3xf32, ["b"]>) -> tensor<?xf32, ["b*3 + 1"]>
  return
}

// -----

func.func @shapeAttribute(%x: tensor<6xf32>) {
  // expected-error @+1 {{attribute 'shape' has the unusable value}}
  %0 = burin.reshape %x {shape = ["not a size"]} : (tensor<6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @dtypeAttribute(%x: tensor<6xf32>) {
  // expected-error @+1 {{attribute 'dtype' has the unusable value index}}
  %0 = burin.cast %x {dtype = index} : (tensor<6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @overflow(%x: tensor<4294967296x1xf32>, %y: tensor<1x4294967296xf32>) {
  // expected-error @+1 {{a size does not fit 64 bits}}
  %0 = burin.matmul %x, %y : (tensor<4294967296x1xf32>, tensor<1x4294967296xf32>) -> tensor<4294967296x4294967296xf32>
  return
}

// -----

func.func @sliceBounds(%x: tensor<?xf32, ["b"]>) {
  // expected-error @+1 {{are not known to satisfy 0 <= start <= stop <= b}}
  %0 = burin.slice %x {starts = [0], stops = [4], steps = array<i64: 1>} : (tensor<?xf32, ["b"]>) -> tensor<4xf32>
  return
}

// -----

func.func @resultCount(%x: tensor<4xf32>) {
  // expected-error @+1 {{must have 2 results, not 1}}
  %0 = burin.split %x {sizes = array<i64: 1, 3>, axis = 0} : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @kernelYield(%x: tensor<4xf32>) {
  // expected-error @+1 {{yields 'tensor<4xf32>' but its results are 'tensor<2xf32>'}}
  %0 = burin.kernel(%a = %x) : (tensor<4xf32>) -> tensor<2xf32> {
    burin.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @kernelCapture(%x: tensor<4xf32>) {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = burin.kernel() : () -> tensor<4xf32> {
    // expected-error @+1 {{using value defined outside the region}}
    burin.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @kernelInputs(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 1 inputs but the types of 2}}
  %0 = burin.kernel(%a = %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    burin.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @kernelInPlace(%x: tensor<4xf32>) {
  // expected-error @+1 {{must name each of 1 inputs at most once}}
  %0:2 = burin.kernel(%a = %x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {in_place = array<i64: 0, 0>} {
    burin.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  return
}

// -----

func.func @missingResource() {
  // expected-error @+1 {{refers to the resource 'gone', which is missing from the file}}
  %0 = burin.constant dense_resource<gone> : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{needs a fixed shape}}
burin.state @s : tensor<?xf32, ["n"]>

// -----

// expected-error @+1 {{starts as 'tensor<3xf32>'}}
burin.state @s : tensor<2xf32> = dense<0.0> : tensor<3xf32>

// -----

// expected-error @+1 {{argument 0 is the state @gone, which is not in this module}}
func.func @unknownState(%s: tensor<2xf32> {burin.state = @gone}) {
  return
}

// -----

burin.state @s : tensor<2xf32>
// expected-error @+1 {{result 0 of type 'tensor<3xf32>' is the state @s of type 'tensor<2xf32>'}}
func.func @stateType(%x: tensor<3xf32>) -> (tensor<3xf32> {burin.state = @s}) {
  return %x : tensor<3xf32>
}

// -----

burin.state @s : tensor<2xf32>
// expected-error @+1 {{argument 0 is a state, so those behind it must be states, too}}
func.func @statesLast(%s: tensor<2xf32> {burin.state = @s}, %x: tensor<2xf32>) {
  return
}

// -----

burin.state @s : tensor<2xf32>
// expected-error @+1 {{argument 1 is the state @s, which argument 0 is already}}
func.func @stateTwice(%s: tensor<2xf32> {burin.state = @s}, %t: tensor<2xf32> {burin.state = @s}) {
  return
}

// -----

func.func private @one(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @ifCondition(%p: tensor<2xi1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{needs one bool to choose by, not 'tensor<2xi1>'}}
  %0 = burin.if %p, @one, @one(%x) : (tensor<2xi1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @one(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @ifBranch(%p: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error @+1 {{needs @one to be '(tensor<3xf32>) -> tensor<3xf32>'; it is '(tensor<2xf32>) -> tensor<2xf32>'}}
  %0 = burin.if %p, @one, @one(%x) : (tensor<i1>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func private @one(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @whileCondition(%x: tensor<2xf32>) {
  // expected-error @+1 {{needs @one to be '(tensor<2xf32>) -> tensor<i1>'}}
  %0 = burin.while @one, @one(%x) {carried = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @whileCarried(%x: tensor<2xf32>) {
  // expected-error @+1 {{carries 2 values, but has 1 inputs and 1 results}}
  %0 = burin.while @gone, @gone(%x) {carried = 2 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}
