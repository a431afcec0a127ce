// RUN: burin-opt --burin-simplify --canonicalize %s | FileCheck %s
// SimplifyTest.cpp also runs these functions before and after the pass.

!t = tensor<2x3x8xf32>
!b = tensor<2x3x8xbf16>
!i = tensor<2x3x8xi32>

// CHECK-LABEL: func.func @silu(
// CHECK-NEXT: %[[Y:.*]] = burin.silu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @silu(%x: !t) -> !t {
  %0 = burin.sigmoid %x : (!t) -> !t
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  return %1 : !t
}

// CHECK-LABEL: func.func @silu_commuted_spelled_out(
// CHECK-NEXT: %[[Y:.*]] = burin.silu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @silu_commuted_spelled_out(%x: !t) -> !t {
  %0 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %1 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %2 = burin.neg %x : (!t) -> !t
  %3 = burin.exp %2 : (!t) -> !t
  %4 = burin.add %1, %3 : (!t, !t) -> !t
  %5 = burin.div %0, %4 : (!t, !t) -> !t
  %6 = burin.mul %5, %x : (!t, !t) -> !t
  return %6 : !t
}

// CHECK-LABEL: func.func @sigmoid_reciprocal(
// CHECK-NEXT: %[[Y:.*]] = burin.sigmoid %arg0
// CHECK-NEXT: return %[[Y]]
func.func @sigmoid_reciprocal(%x: !t) -> !t {
  %0 = burin.neg %x : (!t) -> !t
  %1 = burin.exp %0 : (!t) -> !t
  %2 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %3 = burin.add %1, %2 : (!t, !t) -> !t
  %4 = burin.reciprocal %3 : (!t) -> !t
  return %4 : !t
}

// CHECK-LABEL: func.func @hardswish(
// CHECK-NEXT: %[[Y:.*]] = burin.hardswish %arg0
// CHECK-NEXT: return %[[Y]]
func.func @hardswish(%x: !t) -> !t {
  %0 = burin.hardsigmoid %x : (!t) -> !t
  %1 = burin.mul %0, %x : (!t, !t) -> !t
  return %1 : !t
}

// CHECK-LABEL: func.func @silu_gate_used_elsewhere(
// CHECK: burin.sigmoid
// CHECK: burin.mul
func.func @silu_gate_used_elsewhere(%x: !t) -> (!t, !t) {
  %0 = burin.sigmoid %x : (!t) -> !t
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  return %1, %0 : !t, !t
}

// CHECK-LABEL: func.func @gate_of_another(
// CHECK: burin.sigmoid
// CHECK: burin.mul
func.func @gate_of_another(%x: !t, %y: !t) -> !t {
  %0 = burin.sigmoid %y : (!t) -> !t
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  return %1 : !t
}

// CHECK-LABEL: func.func @gelu_onnx(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu_onnx(%x: !t) -> !t {
  %0 = burin.constant dense<1.41421354> : tensor<2x3x8xf32>
  %1 = burin.div %x, %0 : (!t, !t) -> !t
  %2 = burin.erf %1 : (!t) -> !t
  %3 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %4 = burin.add %2, %3 : (!t, !t) -> !t
  %5 = burin.mul %x, %4 : (!t, !t) -> !t
  %6 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %7 = burin.mul %5, %6 : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @gelu_hugging_face(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu_hugging_face(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  %2 = burin.constant dense<1.41421354> : tensor<2x3x8xf32>
  %3 = burin.div %x, %2 : (!t, !t) -> !t
  %4 = burin.erf %3 : (!t) -> !t
  %5 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %6 = burin.add %4, %5 : (!t, !t) -> !t
  %7 = burin.mul %1, %6 : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @gelu_commuted(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu_commuted(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %2 = burin.constant dense<0.70710678> : tensor<2x3x8xf32>
  %3 = burin.mul %2, %x : (!t, !t) -> !t
  %4 = burin.erf %3 : (!t) -> !t
  %5 = burin.add %1, %4 : (!t, !t) -> !t
  %6 = burin.mul %0, %5 : (!t, !t) -> !t
  %7 = burin.mul %6, %x : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @gelu_distributed(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @gelu_distributed(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.constant dense<0.70710678> : tensor<2x3x8xf32>
  %2 = burin.mul %x, %1 : (!t, !t) -> !t
  %3 = burin.erf %2 : (!t) -> !t
  %4 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %5 = burin.mul %3, %4 : (!t, !t) -> !t
  %6 = burin.add %0, %5 : (!t, !t) -> !t
  %7 = burin.mul %x, %6 : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @gelu_tanh(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0 {approximate = "tanh"}
// CHECK-NEXT: return %[[Y]]
func.func @gelu_tanh(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.mul %0, %x : (!t, !t) -> !t
  %2 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %3 = burin.mul %x, %x : (!t, !t) -> !t
  %4 = burin.mul %x, %3 : (!t, !t) -> !t
  %5 = burin.constant dense<0.044715> : tensor<2x3x8xf32>
  %6 = burin.mul %4, %5 : (!t, !t) -> !t
  %7 = burin.add %x, %6 : (!t, !t) -> !t
  %8 = burin.constant dense<0.797884583> : tensor<2x3x8xf32>
  %9 = burin.mul %7, %8 : (!t, !t) -> !t
  %10 = burin.tanh %9 : (!t) -> !t
  %11 = burin.add %2, %10 : (!t, !t) -> !t
  %12 = burin.mul %1, %11 : (!t, !t) -> !t
  return %12 : !t
}

// GELU as in GPT-2.
// CHECK-LABEL: func.func @gelu_tanh_pow(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0 {approximate = "tanh"}
// CHECK-NEXT: return %[[Y]]
func.func @gelu_tanh_pow(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  %2 = burin.constant dense<0.79788456> : tensor<2x3x8xf32>
  %3 = burin.constant dense<0.044715> : tensor<2x3x8xf32>
  %4 = burin.constant dense<3.0> : tensor<2x3x8xf32>
  %5 = burin.pow %x, %4 : (!t, !t) -> !t
  %6 = burin.mul %3, %5 : (!t, !t) -> !t
  %7 = burin.add %x, %6 : (!t, !t) -> !t
  %8 = burin.mul %2, %7 : (!t, !t) -> !t
  %9 = burin.tanh %8 : (!t) -> !t
  %10 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %11 = burin.add %9, %10 : (!t, !t) -> !t
  %12 = burin.mul %1, %11 : (!t, !t) -> !t
  return %12 : !t
}

// The factored form of "gelu_fast".
// CHECK-LABEL: func.func @gelu_tanh_factored(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0 {approximate = "tanh"}
// CHECK-NEXT: return %[[Y]]
func.func @gelu_tanh_factored(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  %2 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %3 = burin.constant dense<0.79788456> : tensor<2x3x8xf32>
  %4 = burin.mul %x, %3 : (!t, !t) -> !t
  %5 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %6 = burin.constant dense<0.044715> : tensor<2x3x8xf32>
  %7 = burin.mul %6, %x : (!t, !t) -> !t
  %8 = burin.mul %7, %x : (!t, !t) -> !t
  %9 = burin.add %5, %8 : (!t, !t) -> !t
  %10 = burin.mul %4, %9 : (!t, !t) -> !t
  %11 = burin.tanh %10 : (!t) -> !t
  %12 = burin.add %2, %11 : (!t, !t) -> !t
  %13 = burin.mul %1, %12 : (!t, !t) -> !t
  return %13 : !t
}

// The constants rounded to bf16.
// CHECK-LABEL: func.func @gelu_tanh_bf16(
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %arg0 {approximate = "tanh"}
// CHECK-NEXT: return %[[Y]]
func.func @gelu_tanh_bf16(%x: !b) -> !b {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xbf16>
  %1 = burin.mul %0, %x : (!b, !b) -> !b
  %2 = burin.constant dense<1.0> : tensor<2x3x8xbf16>
  %3 = burin.mul %x, %x : (!b, !b) -> !b
  %4 = burin.mul %x, %3 : (!b, !b) -> !b
  %5 = burin.constant dense<0.044715> : tensor<2x3x8xbf16>
  %6 = burin.mul %4, %5 : (!b, !b) -> !b
  %7 = burin.add %x, %6 : (!b, !b) -> !b
  %8 = burin.constant dense<0.796875> : tensor<2x3x8xbf16>
  %9 = burin.mul %7, %8 : (!b, !b) -> !b
  %10 = burin.tanh %9 : (!b) -> !b
  %11 = burin.add %2, %10 : (!b, !b) -> !b
  %12 = burin.mul %1, %11 : (!b, !b) -> !b
  return %12 : !b
}

// CHECK-LABEL: func.func @gelu_of_a_product(
// CHECK-NEXT: %[[X:.*]] = burin.mul %arg0, %arg1
// CHECK-NEXT: %[[Y:.*]] = burin.gelu %[[X]]
// CHECK-NEXT: return %[[Y]]
func.func @gelu_of_a_product(%a: !t, %b: !t) -> !t {
  %0 = burin.mul %a, %b : (!t, !t) -> !t
  %1 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %2 = burin.mul %0, %1 : (!t, !t) -> !t
  %3 = burin.constant dense<1.41421354> : tensor<2x3x8xf32>
  %4 = burin.div %0, %3 : (!t, !t) -> !t
  %5 = burin.erf %4 : (!t) -> !t
  %6 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %7 = burin.add %5, %6 : (!t, !t) -> !t
  %8 = burin.mul %2, %7 : (!t, !t) -> !t
  return %8 : !t
}

// CHECK-LABEL: func.func @gelu_erf_used_elsewhere(
// CHECK-NOT: burin.gelu
// CHECK: burin.erf
func.func @gelu_erf_used_elsewhere(%x: !t) -> (!t, !t) {
  %0 = burin.constant dense<1.41421354> : tensor<2x3x8xf32>
  %1 = burin.div %x, %0 : (!t, !t) -> !t
  %2 = burin.erf %1 : (!t) -> !t
  %3 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %4 = burin.mul %x, %3 : (!t, !t) -> !t
  %5 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %6 = burin.add %2, %5 : (!t, !t) -> !t
  %7 = burin.mul %4, %6 : (!t, !t) -> !t
  return %7, %2 : !t, !t
}

// CHECK-LABEL: func.func @gelu_other_constant(
// CHECK-NOT: burin.gelu
// CHECK: burin.erf
func.func @gelu_other_constant(%x: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.mul %x, %0 : (!t, !t) -> !t
  %2 = burin.constant dense<1.5> : tensor<2x3x8xf32>
  %3 = burin.div %x, %2 : (!t, !t) -> !t
  %4 = burin.erf %3 : (!t) -> !t
  %5 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %6 = burin.add %4, %5 : (!t, !t) -> !t
  %7 = burin.mul %1, %6 : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @gelu_other_gate(
// CHECK-NOT: burin.gelu
// CHECK: burin.erf
func.func @gelu_other_gate(%x: !t, %y: !t) -> !t {
  %0 = burin.constant dense<0.5> : tensor<2x3x8xf32>
  %1 = burin.mul %y, %0 : (!t, !t) -> !t
  %2 = burin.constant dense<1.41421354> : tensor<2x3x8xf32>
  %3 = burin.div %x, %2 : (!t, !t) -> !t
  %4 = burin.erf %3 : (!t) -> !t
  %5 = burin.constant dense<1.0> : tensor<2x3x8xf32>
  %6 = burin.add %4, %5 : (!t, !t) -> !t
  %7 = burin.mul %1, %6 : (!t, !t) -> !t
  return %7 : !t
}

// CHECK-LABEL: func.func @integers(
// CHECK-NEXT: burin.mul
// CHECK-NEXT: burin.mul
// CHECK-NEXT: return
func.func @integers(%x: !i) -> !i {
  %0 = burin.mul %x, %x : (!i, !i) -> !i
  %1 = burin.mul %x, %0 : (!i, !i) -> !i
  return %1 : !i
}
