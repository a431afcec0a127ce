// RUN: burin-opt --burin-narrow-integer-products --canonicalize --split-input-file %s | FileCheck %s

// Zero points that are computed: sums of columns of the right side, and of rows of the left one.
// CHECK-LABEL: func.func @computed(
// CHECK-DAG: %[[T:.*]] = burin.transpose %arg2 {{.*}} : (tensor<36x40xi8>) -> tensor<40x36xi8>
// CHECK-DAG: %[[P:.*]] = burin.reshape %[[T]] {{.*}} -> tensor<40x36x1xi8>
// CHECK-DAG: %[[S:.*]] = burin.contract %arg0, %[[P]] {{.*}}wide{{.*}} : (tensor<8x36xui8>, tensor<40x36x1xi8>) -> tensor<8x40xi32>
// CHECK-DAG: burin.reduce_sum %arg2 {axes = array<i64: 0>, keepdims = true} : (tensor<36x40xi8>)
// CHECK-DAG: burin.reduce_sum {{.*}} {axes = array<i64: 1>, keepdims = true} : (tensor<8x36xi32>)
// CHECK-DAG: burin.add %[[S]]
func.func @computed(%x: tensor<8x36xui8>, %a: tensor<ui8>, %w: tensor<36x40xi8>, %b: tensor<i8>) -> tensor<8x40xi32> {
  %0 = burin.cast %x {dtype = i32} : (tensor<8x36xui8>) -> tensor<8x36xi32>
  %1 = burin.cast %a {dtype = i32} : (tensor<ui8>) -> tensor<i32>
  %2 = burin.broadcast_to %1 {shape = [8, 36]} : (tensor<i32>) -> tensor<8x36xi32>
  %3 = burin.sub %0, %2 : (tensor<8x36xi32>, tensor<8x36xi32>) -> tensor<8x36xi32>
  %4 = burin.cast %w {dtype = i32} : (tensor<36x40xi8>) -> tensor<36x40xi32>
  %5 = burin.cast %b {dtype = i32} : (tensor<i8>) -> tensor<i32>
  %6 = burin.broadcast_to %5 {shape = [36, 40]} : (tensor<i32>) -> tensor<36x40xi32>
  %7 = burin.sub %4, %6 : (tensor<36x40xi32>, tensor<36x40xi32>) -> tensor<36x40xi32>
  %8 = burin.pack %7 {width = 32 : i64} : (tensor<36x40xi32>) -> tensor<2x36x32xi32>
  %9 = burin.contract %3, %8 : (tensor<8x36xi32>, tensor<2x36x32xi32>) -> tensor<8x40xi32>
  return %9 : tensor<8x40xi32>
}

// -----

// Constants of 256 successive numbers are bytes and a number.
// CHECK-LABEL: func.func @constant(
// CHECK-DAG: burin.constant {{.*}} : tensor<2x2xi8>
// CHECK-DAG: burin.contract %arg0, {{.*}} : (tensor<8x2xi8>, tensor<2x2x1xi8>) -> tensor<8x2xi32>
// CHECK-DAG: burin.reduce_sum
func.func @constant(%x: tensor<8x2xi8>) -> tensor<8x2xi32> {
  %w = burin.constant dense<[[-200, 55], [-199, -198]]> : tensor<2x2xi32>
  %0 = burin.cast %x {dtype = i32} : (tensor<8x2xi8>) -> tensor<8x2xi32>
  %1 = burin.pack %w {width = 32 : i64} : (tensor<2x2xi32>) -> tensor<1x2x32xi32>
  %2 = burin.contract %0, %1 : (tensor<8x2xi32>, tensor<1x2x32xi32>) -> tensor<8x2xi32>
  return %2 : tensor<8x2xi32>
}

// -----

// Padding counts as 0: as the zero point among bytes.
// CHECK-LABEL: func.func @padded(
// CHECK: %[[X:.*]] = burin.pad %arg0 {high = array<i64: 0, 2, 0>, {{.*}}low = array<i64: 0, 1, 0>{{.*}}value = 7.000000e+00
// CHECK: burin.contract %[[X]], {{.*}} kernel [1, 3]
// CHECK-NOT: padding
func.func @padded(%x: tensor<2x9x4xui8>, %w: tensor<12x32xi8>) -> tensor<2x10x32xi32> {
  %z = burin.constant dense<7> : tensor<1x1x1xi32>
  %0 = burin.cast %x {dtype = i32} : (tensor<2x9x4xui8>) -> tensor<2x9x4xi32>
  %1 = burin.broadcast_to %z {shape = [2, 9, 4]} : (tensor<1x1x1xi32>) -> tensor<2x9x4xi32>
  %2 = burin.sub %0, %1 : (tensor<2x9x4xi32>, tensor<2x9x4xi32>) -> tensor<2x9x4xi32>
  %3 = burin.cast %w {dtype = i32} : (tensor<12x32xi8>) -> tensor<12x32xi32>
  %4 = burin.pack %3 {width = 32 : i64} : (tensor<12x32xi32>) -> tensor<1x12x32xi32>
  %5 = burin.contract %2, %4 kernel [1, 3] padding [0, 1, 0, 2] : (tensor<2x9x4xi32>, tensor<1x12x32xi32>) -> tensor<2x10x32xi32>
  return %5 : tensor<2x10x32xi32>
}

// -----

// Numbers that are no bytes stay as they are, and so do zero points per row.
// CHECK-LABEL: func.func @wide(
// CHECK-COUNT-2: burin.contract {{.*}} : (tensor<8x2xi32>, tensor<1x2x32xi32>) -> tensor<8x2xi32>
func.func @wide(%x: tensor<8x2xi8>, %y: tensor<8x2xi32>, %z: tensor<8x1xi32>) -> (tensor<8x2xi32>, tensor<8x2xi32>) {
  %w = burin.constant dense<[[-200, 56], [-199, -198]]> : tensor<2x2xi32>
  %v = burin.constant dense<1> : tensor<2x2xi32>
  %0 = burin.cast %x {dtype = i32} : (tensor<8x2xi8>) -> tensor<8x2xi32>
  %1 = burin.pack %w {width = 32 : i64} : (tensor<2x2xi32>) -> tensor<1x2x32xi32>
  %2 = burin.contract %0, %1 : (tensor<8x2xi32>, tensor<1x2x32xi32>) -> tensor<8x2xi32>
  %3 = burin.broadcast_to %z {shape = [8, 2]} : (tensor<8x1xi32>) -> tensor<8x2xi32>
  %4 = burin.sub %0, %3 : (tensor<8x2xi32>, tensor<8x2xi32>) -> tensor<8x2xi32>
  %5 = burin.pack %v {width = 32 : i64} : (tensor<2x2xi32>) -> tensor<1x2x32xi32>
  %6 = burin.contract %4, %5 : (tensor<8x2xi32>, tensor<1x2x32xi32>) -> tensor<8x2xi32>
  return %2, %6 : tensor<8x2xi32>, tensor<8x2xi32>
}
