// RUN: burin-opt --burin-merge-products %s | FileCheck %s

// CHECK-LABEL: func.func @attention(
// CHECK: %[[W:.*]] = burin.concat {{.*}} -> tensor<64x192xf16>
// CHECK: %[[R:.*]] = burin.broadcast_to %[[W]] {shape = [1, 64, 192]}
// CHECK: %[[P:.*]] = burin.matmul %arg0, %[[R]] : {{.*}} -> tensor<1x10x192xf16>
// CHECK: %[[B:.*]] = burin.concat {{.*}} -> tensor<192xf16>
// CHECK: burin.add %[[P]]
// CHECK: burin.slice {{.*}}starts = [0, 0, 0]
// CHECK: burin.slice {{.*}}starts = [0, 0, 64]
// CHECK: burin.slice {{.*}}starts = [0, 0, 128]
func.func @attention(%x: tensor<1x10x64xf16>) -> (tensor<1x10x64xf16>, tensor<1x10x64xf16>, tensor<1x10x64xf16>) {
  %q = burin.constant dense<1.0> : tensor<64x64xf16>
  %qr = burin.broadcast_to %q {shape = [1, 64, 64]} : (tensor<64x64xf16>) -> tensor<1x64x64xf16>
  %bq = burin.constant dense<0.1> : tensor<64xf16>
  %0 = burin.matmul %x, %qr : (tensor<1x10x64xf16>, tensor<1x64x64xf16>) -> tensor<1x10x64xf16>
  %1 = burin.broadcast_to %bq {shape = [1, 10, 64]} : (tensor<64xf16>) -> tensor<1x10x64xf16>
  %2 = burin.add %0, %1 : (tensor<1x10x64xf16>, tensor<1x10x64xf16>) -> tensor<1x10x64xf16>
  %k = burin.constant dense<2.0> : tensor<64x64xf16>
  %kr = burin.broadcast_to %k {shape = [1, 64, 64]} : (tensor<64x64xf16>) -> tensor<1x64x64xf16>
  %bk = burin.constant dense<0.2> : tensor<64xf16>
  %3 = burin.matmul %x, %kr : (tensor<1x10x64xf16>, tensor<1x64x64xf16>) -> tensor<1x10x64xf16>
  %4 = burin.broadcast_to %bk {shape = [1, 10, 64]} : (tensor<64xf16>) -> tensor<1x10x64xf16>
  %5 = burin.add %4, %3 : (tensor<1x10x64xf16>, tensor<1x10x64xf16>) -> tensor<1x10x64xf16>
  %v = burin.constant dense<3.0> : tensor<64x64xf16>
  %vr = burin.broadcast_to %v {shape = [1, 64, 64]} : (tensor<64x64xf16>) -> tensor<1x64x64xf16>
  %bv = burin.constant dense<0.3> : tensor<64xf16>
  %6 = burin.matmul %x, %vr : (tensor<1x10x64xf16>, tensor<1x64x64xf16>) -> tensor<1x10x64xf16>
  %7 = burin.broadcast_to %bv {shape = [1, 10, 64]} : (tensor<64xf16>) -> tensor<1x10x64xf16>
  %8 = burin.add %6, %7 : (tensor<1x10x64xf16>, tensor<1x10x64xf16>) -> tensor<1x10x64xf16>
  return %2, %5, %8 : tensor<1x10x64xf16>, tensor<1x10x64xf16>, tensor<1x10x64xf16>
}

// A matrix that is not constant would be copied in every run; three columns do not end at 16 bytes.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: burin.concat
func.func @others(%x: tensor<10x64xf16>, %w: tensor<64x64xf16>)
    -> (tensor<10x64xf16>, tensor<10x64xf16>, tensor<10x3xf16>) {
  %q = burin.constant dense<1.0> : tensor<64x64xf16>
  %k = burin.constant dense<2.0> : tensor<64x3xf16>
  %0 = burin.matmul %x, %q : (tensor<10x64xf16>, tensor<64x64xf16>) -> tensor<10x64xf16>
  %1 = burin.matmul %x, %w : (tensor<10x64xf16>, tensor<64x64xf16>) -> tensor<10x64xf16>
  %2 = burin.matmul %x, %k : (tensor<10x64xf16>, tensor<64x3xf16>) -> tensor<10x3xf16>
  return %0, %1, %2 : tensor<10x64xf16>, tensor<10x64xf16>, tensor<10x3xf16>
}
