// Passes of the directory passes/lower, see passes/Passes.td.
#ifndef BURIN_LOWER_PASSES
#define BURIN_LOWER_PASSES
include "mlir/Pass/PassBase.td"

def LayoutAssignmentPass : Pass<"burin-layout-assignment", "::mlir::ModuleOp"> {
  let summary = "Chooses channels-first or channels-last per op";
  let description = [{
    Convolutions and pooling run channels-last, and so do the ops between them. Each op that supports both layouts
    (LayoutModel.h) is assigned one, so that the fewest bytes are transposed: a minimum cut between convolutions on one
    side and ops that only support the layout of the graph on the other.

    Before:
    ```mlir
    func.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
      %0 = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
      return %0 : tensor<1x4x8x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @conv(%arg0: tensor<1x3x8x8xf32>, %arg1: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
      %0 = burin.transpose %arg1 {perm = array<i64: 2, 3, 1, 0>} : (tensor<4x3x3x3xf32>) -> tensor<3x3x3x4xf32>
      %1 = burin.transpose %arg0 {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
      %2 = burin.conv %1, %0 {dilations = array<i64: 1, 1>, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x8x8x4xf32>
      %3 = burin.transpose %2 {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x4xf32>) -> tensor<1x4x8x8xf32>
      return %3 : tensor<1x4x8x8xf32>
    }
    ```
  }];
}

def LowerContractionsPass : Pass<"burin-lower-contractions", "::mlir::ModuleOp"> {
  let summary = "Lowers matmul and conv to pack and contract";
  let description = [{
    The right side is packed into panels of 128 bytes, which `burin-constant-fold` does at compile time for constant
    weights. Groups of a convolution become batches. The last columns, where they are few, are packed apart as rows.
    For GPUs, long products and convolutions with few results are split into a batch of shorter ones, each of a part of
    the channels, whose f32 results are added in order; convolutions whose windows are the whole image become products.
    CPUs read a right side with at most 32 columns of f32 (16 of f64), if it is no constant, as it lies in memory.
    For CPUs, a transposed product of a transposed left side becomes the product of the operands in reverse order, if that
    moves fewer elements.
    CPUs without AVX-512 get transposed left sides of products whose rows are multiples of 512 bytes, and those of gradients
    of the weights of convolutions, in panels of 64 bytes.
    Right sides that are converted from 8-bit floats to f32 are packed as 8-bit floats; of products of 8-bit floats CPUs
    get the left side as f32.

    Before:
    ```mlir
    func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x50xf32>) -> tensor<4x50xf32> {
      %0 = burin.matmul %x, %w : (tensor<4x8xf32>, tensor<8x50xf32>) -> tensor<4x50xf32>
      return %0 : tensor<4x50xf32>
    }
    ```
    After:
    ```mlir
    func.func @product(%arg0: tensor<4x8xf32>, %arg1: tensor<8x50xf32>) -> tensor<4x50xf32> {
      %0 = burin.pack %arg1 {width = 32 : i64} : (tensor<8x50xf32>) -> tensor<2x8x32xf32>
      %1 = burin.contract %arg0, %0 : (tensor<4x8xf32>, tensor<2x8x32xf32>) -> tensor<4x50xf32>
      return %1 : tensor<4x50xf32>
    }
    ```
  }];
  let options = [
    Option<"onGpus", "on-gpus", "bool", "false",
           "Whether all targets are GPUs: contractions with few long sums are split, and 8-bit floats on both sides stay">,
    Option<"onCpus", "on-cpus", "bool", "true",
           "Whether all targets are CPUs, which read narrow right sides unpacked">,
    Option<"forLibraries", "for-libraries", "bool", "false",
           "Whether libraries may compute products: right sides of floats that are constants are not packed, either">,
    Option<"shortTiles", "short-tiles", "bool", "false",
           "Whether a target is a CPU whose tiles of sums have few rows: transposed left sides may be packed">,
  ];
}

def MergeProductsPass : Pass<"burin-merge-products", "::mlir::ModuleOp"> {
  let summary = "Merges small products of one value with constant matrices";
  let description = [{
    Queries, keys and values of attention are products of one value with three matrices. For GPUs they become one product
    with the matrices side by side, of which slices are used; constant biases, if all have one, are merged, too. The
    matrices have the same element type and number of rows. Each product has few tiles of 64 by 64 results (fewer than
    264, of static sizes), so that alone it would leave multiprocessors idle, and a multiple of 16 bytes of columns.

    Before:
    ```mlir
    func.func @pair(%x: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
      %v = burin.constant dense<1.0> : tensor<8x4xf32>
      %w = burin.constant dense<2.0> : tensor<8x8xf32>
      %0 = burin.matmul %x, %v : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
      %1 = burin.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      return %0, %1 : tensor<4x4xf32>, tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @pair(%arg0: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
      %0 = burin.constant dense<1.000000e+00> : tensor<8x4xf32>
      %1 = burin.constant dense<2.000000e+00> : tensor<8x8xf32>
      %2 = burin.concat %0, %1 {axis = 1 : i64} : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<8x12xf32>
      %3 = burin.matmul %arg0, %2 : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
      %4 = burin.slice %3 {starts = [0, 0], steps = array<i64: 1, 1>, stops = [4, 4]} : (tensor<4x12xf32>) -> tensor<4x4xf32>
      %5 = burin.slice %3 {starts = [0, 4], steps = array<i64: 1, 1>, stops = [4, 12]} : (tensor<4x12xf32>) -> tensor<4x8xf32>
      return %4, %5 : tensor<4x4xf32>, tensor<4x8xf32>
    }
    ```
  }];
}

def SinkReshapesPass : Pass<"burin-sink-reshapes", "::mlir::ModuleOp"> {
  let summary = "Moves the reshape of a product after the elementwise ops that use it";
  let description = [{
    For a batch of sequences, `x @ w + b` becomes one matrix product with its bias, in one iteration space. Only reshapes
    that split the rows of a product are moved.

    Before:
    ```mlir
    func.func @rows(%x: tensor<6x8xf32>, %w: tensor<1x8x32xf32>) -> tensor<2x3x5xf32> {
      %0 = burin.contract %x, %w : (tensor<6x8xf32>, tensor<1x8x32xf32>) -> tensor<6x5xf32>
      %1 = burin.reshape %0 {shape = [2, 3, 5]} : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
      %2 = burin.relu %1 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
      return %2 : tensor<2x3x5xf32>
    }
    ```
    After:
    ```mlir
    func.func @rows(%arg0: tensor<6x8xf32>, %arg1: tensor<1x8x32xf32>) -> tensor<2x3x5xf32> {
      %0 = burin.contract %arg0, %arg1 : (tensor<6x8xf32>, tensor<1x8x32xf32>) -> tensor<6x5xf32>
      %1 = burin.relu %0 : (tensor<6x5xf32>) -> tensor<6x5xf32>
      %2 = burin.reshape %1 {shape = [2, 3, 5]} : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
      return %2 : tensor<2x3x5xf32>
    }
    ```
  }];
}

def ShareTiedWeightsPass : Pass<"burin-share-tied-weights", "::mlir::ModuleOp"> {
  let summary = "Reads rows of an embedding table from the panels of the product that it is tied to";
  let description = [{
    If a language model multiplies by its embedding matrix, `take` reads the packed panels, too, so that an artifact
    contains the matrix once. Tied matrices are recognised by their elements, also in models that store the transposed
    matrix separately.

    Before:
    ```mlir
    func.func @tied(%t: tensor<3xi64>, %x: tensor<2x64xf32>) -> (tensor<3x64xf32>, tensor<2x4096xf32>) {
      %w = burin.constant dense<0.5> : tensor<4096x64xf32>
      %p = burin.constant dense<0.5> : tensor<128x64x32xf32>
      %0 = burin.take %w, %t {axis = 0 : i64} : (tensor<4096x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
      %1 = burin.contract %x, %p : (tensor<2x64xf32>, tensor<128x64x32xf32>) -> tensor<2x4096xf32>
      return %0, %1 : tensor<3x64xf32>, tensor<2x4096xf32>
    }
    ```
    After:
    ```mlir
    func.func @tied(%arg0: tensor<3xi64>, %arg1: tensor<2x64xf32>) -> (tensor<3x64xf32>, tensor<2x4096xf32>) {
      %0 = burin.constant dense<5.000000e-01> : tensor<128x64x32xf32>
      %1 = burin.reshape %0 {shape = [262144]} : (tensor<128x64x32xf32>) -> tensor<262144xf32>
      %2 = burin.full  {dtype = i64, shape = [3], value = 0.000000e+00 : f64} : () -> tensor<3xi64>
      %3 = burin.lt %arg0, %2 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
      %4 = burin.full  {dtype = i64, shape = [3], value = 4.096000e+03 : f64} : () -> tensor<3xi64>
      %5 = burin.add %arg0, %4 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %6 = burin.where %3, %5, %arg0 : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %7 = burin.full  {dtype = i64, shape = [3], value = 0.000000e+00 : f64} : () -> tensor<3xi64>
      %8 = burin.ge %6, %7 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
      %9 = burin.full  {dtype = i64, shape = [3], value = 4.096000e+03 : f64} : () -> tensor<3xi64>
      %10 = burin.lt %6, %9 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
      %11 = burin.bitwise_and %8, %10 : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
      %12 = burin.check %11, %6 {message = "an index of take is out of range along axis 0"} : (tensor<3xi1>, tensor<3xi64>) -> tensor<3xi64>
      %13 = burin.full  {dtype = i64, shape = [3], value = 4.095000e+03 : f64} : () -> tensor<3xi64>
      %14 = burin.minimum %12, %13 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %15 = burin.full  {dtype = i64, shape = [3], value = 0.000000e+00 : f64} : () -> tensor<3xi64>
      %16 = burin.maximum %14, %15 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %17 = burin.full  {dtype = i64, shape = [3], value = 3.100000e+01 : f64} : () -> tensor<3xi64>
      %18 = burin.bitwise_and %16, %17 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %19 = burin.sub %16, %18 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %20 = burin.full  {dtype = i64, shape = [3], value = 6.400000e+01 : f64} : () -> tensor<3xi64>
      %21 = burin.mul %19, %20 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %22 = burin.add %21, %18 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %23 = burin.iota  {axis = 1 : i64, dtype = i64, shape = [3, 64]} : () -> tensor<3x64xi64>
      %24 = burin.full  {dtype = i64, shape = [3, 64], value = 3.200000e+01 : f64} : () -> tensor<3x64xi64>
      %25 = burin.mul %23, %24 : (tensor<3x64xi64>, tensor<3x64xi64>) -> tensor<3x64xi64>
      %26 = burin.reshape %22 {shape = [3, 1]} : (tensor<3xi64>) -> tensor<3x1xi64>
      %27 = burin.broadcast_to %26 {shape = [3, 64]} : (tensor<3x1xi64>) -> tensor<3x64xi64>
      %28 = burin.add %27, %25 : (tensor<3x64xi64>, tensor<3x64xi64>) -> tensor<3x64xi64>
      %29 = burin.take %1, %28 : (tensor<262144xf32>, tensor<3x64xi64>) -> tensor<3x64xf32>
      %30 = burin.contract %arg1, %0 : (tensor<2x64xf32>, tensor<128x64x32xf32>) -> tensor<2x4096xf32>
      return %29, %30 : tensor<3x64xf32>, tensor<2x4096xf32>
    }
    ```
  }];
}

def LoopInvariantCodeMotionPass : Pass<"burin-loop-invariant-code-motion", "::mlir::ModuleOp"> {
  let summary = "Moves ops that have the same result in all iterations out of loops";
  let description = [{
    For example, a weight that is an input of the graph is packed once, not in every iteration of a `scan`.

    Before:
    ```mlir
    func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
      %0 = burin.scan @body(%x, %w) {sliced = 1 : i64, parts = [8]} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    func.func private @body(%x: tensor<1x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x4xf32> {
      %0 = burin.pack %w {width = 32 : i64} : (tensor<4x4xf32>) -> tensor<1x4x32xf32>
      %1 = burin.contract %x, %0 : (tensor<1x4xf32>, tensor<1x4x32xf32>) -> tensor<1x4xf32>
      return %1 : tensor<1x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4x4xf32>) -> tensor<8x4xf32> {
      %0 = burin.pack %arg1 {width = 32 : i64} : (tensor<4x4xf32>) -> tensor<1x4x32xf32>
      %1 = burin.scan @body(%arg0, %0) {parts = [8], sliced = 1 : i64} : (tensor<8x4xf32>, tensor<1x4x32xf32>) -> tensor<8x4xf32>
      return %1 : tensor<8x4xf32>
    }
    func.func private @body(%arg0: tensor<1x4xf32>, %arg1: tensor<1x4x32xf32>) -> tensor<1x4xf32> {
      %0 = burin.contract %arg0, %arg1 : (tensor<1x4xf32>, tensor<1x4x32xf32>) -> tensor<1x4xf32>
      return %0 : tensor<1x4xf32>
    }
    ```
  }];
}

def ShrinkToDemandPass : Pass<"burin-shrink-to-demand", "::mlir::ModuleOp"> {
  let summary = "Removes rows and columns that no window reads";
  let description = [{
    If a pooling layer does not read the last rows or columns of a convolution, the convolution does not compute them,
    and so reads less of its own input, which is shrunk likewise.

    Before:
    ```mlir
    func.func @pooled(%x: tensor<1x11x11x4xf32>, %w: tensor<1x36x32xf32>) -> tensor<1x4x4x6xf32> {
      %0 = burin.contract %x, %w kernel [1, 3, 3] : (tensor<1x11x11x4xf32>, tensor<1x36x32xf32>) -> tensor<1x9x9x6xf32>
      %1 = burin.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<1x9x9x6xf32>) -> tensor<1x4x4x6xf32>
      return %1 : tensor<1x4x4x6xf32>
    }
    ```
    After:
    ```mlir
    func.func @pooled(%arg0: tensor<1x11x11x4xf32>, %arg1: tensor<1x36x32xf32>) -> tensor<1x4x4x6xf32> {
      %0 = burin.contract %arg0, %arg1 kernel [1, 3, 3] padding [0, 0, 0, 0, -1, -1] : (tensor<1x11x11x4xf32>, tensor<1x36x32xf32>) -> tensor<1x8x8x6xf32>
      %1 = burin.max_pool %0 {dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x8x8x6xf32>) -> tensor<1x4x4x6xf32>
      return %1 : tensor<1x4x4x6xf32>
    }
    ```
  }];
}

def BatchTilingPass : Pass<"burin-batch-tiling", "::mlir::ModuleOp"> {
  let summary = "Runs layers with large activations in a loop over parts of the batch";
  let description = [{
    Several consecutive layers whose activations are larger than their weights run one part of the batch after the other:
    the output of a layer is still in cache when the next one reads it, and memory holds one part instead of the batch.
    Threads take separate parts, and code for a symbolic batch is that for a batch of 1.

    Before:
    ```mlir
    func.func @main(%x: tensor<64x64x64x4xf32>) -> tensor<64x16x16x4xf32> {
      %0 = burin.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<64x64x64x4xf32>) -> tensor<64x32x32x4xf32>
      %1 = burin.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<64x32x32x4xf32>) -> tensor<64x16x16x4xf32>
      return %1 : tensor<64x16x16x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%arg0: tensor<64x64x64x4xf32>) -> tensor<64x16x16x4xf32> {
      %0 = burin.scan @main_part0(%arg0) {parts = [64], sliced = 1 : i64} : (tensor<64x64x64x4xf32>) -> tensor<64x16x16x4xf32>
      return %0 : tensor<64x16x16x4xf32>
    }
    func.func private @main_part0(%arg0: tensor<1x64x64x4xf32>) -> tensor<1x16x16x4xf32> {
      %0 = burin.max_pool %arg0 {dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x64x64x4xf32>) -> tensor<1x32x32x4xf32>
      %1 = burin.max_pool %0 {dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x32x32x4xf32>) -> tensor<1x16x16x4xf32>
      return %1 : tensor<1x16x16x4xf32>
    }
    ```
  }];
  let options = [
    Option<"leastGain", "least-gain", "int64_t", "kLeastGainOfSplit",
           "Bytes of memory traffic that a part must save to be worth an iteration of the loop">,
  ];
}

def MarkZeroSkippablePass : Pass<"burin-mark-zero-skippable", "::mlir::ModuleOp"> {
  let summary = "Marks products with large finite matrices, whose kernels may skip zeros of the left operand";
  let description = [{
    The product of one row and a large matrix is bound by the memory bandwidth for the matrix. A kernel may skip the matrix
    rows of zero elements, of which there are many after a relu, if the matrix has no infinity or NaN.

    Before:
    ```mlir
    func.func @one(%x: tensor<1x1024xf32>) -> tensor<1x256xf32> {
      %w = burin.constant dense<1.5> : tensor<8x1024x32xf32>
      %0 = burin.contract %x, %w : (tensor<1x1024xf32>, tensor<8x1024x32xf32>) -> tensor<1x256xf32>
      return %0 : tensor<1x256xf32>
    }
    ```
    After:
    ```mlir
    func.func @one(%arg0: tensor<1x1024xf32>) -> tensor<1x256xf32> {
      %0 = burin.constant dense<1.500000e+00> : tensor<8x1024x32xf32>
      %1 = burin.contract %arg0, %0 finite : (tensor<1x1024xf32>, tensor<8x1024x32xf32>) -> tensor<1x256xf32>
      return %1 : tensor<1x256xf32>
    }
    ```
  }];
}

def MarkPartialSortsPass : Pass<"burin-mark-partial-sorts", "::mlir::ModuleOp"> {
  let summary = "Marks sorts of which only the first results are read";
  let description = [{
    `topk` is a sort followed by a slice. Selecting the first elements needs one pass over the elements, sorting all of
    them several.

    Before:
    ```mlir
    func.func @first(%x: tensor<1000xf32>) -> tensor<10xi64> {
      %0 = burin.argsort %x {axis = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xi64>
      %1 = burin.slice %0 {starts = [0], stops = [10], steps = array<i64: 1>} : (tensor<1000xi64>) -> tensor<10xi64>
      return %1 : tensor<10xi64>
    }
    ```
    After:
    ```mlir
    func.func @first(%arg0: tensor<1000xf32>) -> tensor<10xi64> {
      %0 = burin.argsort %arg0 {axis = 0 : i64, burin.first = 10 : i64} : (tensor<1000xf32>) -> tensor<1000xi64>
      %1 = burin.slice %0 {starts = [0], steps = array<i64: 1>, stops = [10]} : (tensor<1000xi64>) -> tensor<10xi64>
      return %1 : tensor<10xi64>
    }
    ```
  }];
}

def CheckIndicesEarlyPass : Pass<"burin-check-indices-early", "::mlir::ModuleOp"> {
  let summary = "Checks indices before states are set";
  let description = [{
    States are committed after the last step that can fail, and those that are set before it take a second buffer. In
    functions that set states, indices that are known early are checked early: a take from 0, 1, 2, … reports the error
    of the op, which then reads its operand at the checked indices and cannot fail.

    Before:
    ```mlir
    burin.state @sum : tensor<4xf32>
    func.func @last(%x: tensor<8x4xf32>, %i: tensor<2xi64>, %sum: tensor<4xf32> {burin.state = @sum}) -> (tensor<2x4xf32>, tensor<4xf32> {burin.state = @sum}) {
      %0 = burin.softmax %x {axis = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %1 = burin.take %0, %i : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
      %2 = burin.exp %sum : (tensor<4xf32>) -> tensor<4xf32>
      return %1, %2 : tensor<2x4xf32>, tensor<4xf32>
    }
    ```
    After:
    ```mlir
    burin.state @sum : tensor<4xf32>
    func.func @last(%arg0: tensor<8x4xf32>, %arg1: tensor<2xi64>, %arg2: tensor<4xf32> {burin.state = @sum}) -> (tensor<2x4xf32>, tensor<4xf32> {burin.state = @sum}) {
      %0 = burin.iota  {dtype = i64, shape = [8]} : () -> tensor<8xi64>
      %1 = burin.take %0, %arg1 {burin.error = "an index of take is out of range along axis 0"} : (tensor<8xi64>, tensor<2xi64>) -> tensor<2xi64>
      %2 = burin.softmax %arg0 {axis = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %3 = burin.take %2, %1 {burin.checked} : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
      %4 = burin.exp %arg2 : (tensor<4xf32>) -> tensor<4xf32>
      return %3, %4 : tensor<2x4xf32>, tensor<4xf32>
    }
    ```
  }];
}

def MarkCheckedIndicesPass : Pass<"burin-mark-checked-indices", "::mlir::ModuleOp"> {
  let summary = "Marks scatters whose indices are known to be in range";
  let description = [{
    The gradient of an embedding adds rows at the indices that the forward pass has read and checked. Setting a part of a
    tensor writes positions that are chosen from those of all elements. The scatter need not check such indices, and as a
    kernel that cannot fail it need not run before states are updated, and may overwrite a state.

    Before:
    ```mlir
    func.func @gradient(%x: tensor<8x4xf32>, %i: tensor<6xi64>, %g: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<8x4xf32>) {
      %y = burin.take %x, %i : (tensor<8x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
      %j = burin.reshape %i {shape = [6, 1]} : (tensor<6xi64>) -> tensor<6x1xi64>
      %k = burin.broadcast_to %j {shape = [6, 4]} : (tensor<6x1xi64>) -> tensor<6x4xi64>
      %z = burin.scatter %x, %k, %g {reduction = "add"} : (tensor<8x4xf32>, tensor<6x4xi64>, tensor<6x4xf32>) -> tensor<8x4xf32>
      return %y, %z : tensor<6x4xf32>, tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @gradient(%arg0: tensor<8x4xf32>, %arg1: tensor<6xi64>, %arg2: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<8x4xf32>) {
      %0 = burin.take %arg0, %arg1 : (tensor<8x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
      %1 = burin.reshape %arg1 {shape = [6, 1]} : (tensor<6xi64>) -> tensor<6x1xi64>
      %2 = burin.broadcast_to %1 {shape = [6, 4]} : (tensor<6x1xi64>) -> tensor<6x4xi64>
      %3 = burin.scatter %arg0, %2, %arg2 {drop = true, reduction = "add"} : (tensor<8x4xf32>, tensor<6x4xi64>, tensor<6x4xf32>) -> tensor<8x4xf32>
      return %0, %3 : tensor<6x4xf32>, tensor<8x4xf32>
    }
    ```
  }];
}

def NarrowIntegerProductsPass : Pass<"burin-narrow-integer-products", "::mlir::ModuleOp"> {
  let summary = "Multiplies bytes instead of i32, in products of quantised values";
  let description = [{
    For GPUs alone, which multiply bytes on tensor cores. A quantised value less its zero point is a byte plus a number that all
    elements share: `(x + a) * (w + b) = x * w + a * (sums of the columns of w) + b * (sums of the rows of x + a)`.
    Arithmetic of i32 wraps, so the results are the same bits. Constants of 256 successive numbers are bytes, too. Windows
    that reach into padding need a constant zero point on the left, with which the bytes are padded; if they have several
    taps, the right side must have none.

    Before:
    ```mlir
    func.func @product(%x: tensor<8x64xui8>, %zero: tensor<ui8>, %w: tensor<64x32xi8>) -> tensor<8x32xi32> {
      %0 = burin.cast %x {dtype = i32} : (tensor<8x64xui8>) -> tensor<8x64xi32>
      %1 = burin.cast %zero {dtype = i32} : (tensor<ui8>) -> tensor<i32>
      %2 = burin.broadcast_to %1 {shape = [8, 64]} : (tensor<i32>) -> tensor<8x64xi32>
      %3 = burin.sub %0, %2 : (tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64xi32>
      %4 = burin.cast %w {dtype = i32} : (tensor<64x32xi8>) -> tensor<64x32xi32>
      %5 = burin.pack %4 {width = 32 : i64} : (tensor<64x32xi32>) -> tensor<1x64x32xi32>
      %6 = burin.contract %3, %5 : (tensor<8x64xi32>, tensor<1x64x32xi32>) -> tensor<8x32xi32>
      return %6 : tensor<8x32xi32>
    }
    ```
    After:
    ```mlir
    func.func @product(%arg0: tensor<8x64xui8>, %arg1: tensor<ui8>, %arg2: tensor<64x32xi8>) -> tensor<8x32xi32> {
      %0 = burin.cast %arg1 {dtype = i32} : (tensor<ui8>) -> tensor<i32>
      %1 = burin.full  {dtype = i32, shape = [], value = 0.000000e+00 : f64} : () -> tensor<i32>
      %2 = burin.sub %1, %0 : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = burin.transpose %arg2 {perm = array<i64: 1, 0>} : (tensor<64x32xi8>) -> tensor<32x64xi8>
      %4 = burin.reshape %3 {shape = [32, 64, 1]} : (tensor<32x64xi8>) -> tensor<32x64x1xi8>
      %5 = burin.contract %arg0, %4 wide : (tensor<8x64xui8>, tensor<32x64x1xi8>) -> tensor<8x32xi32>
      %6 = burin.reduce_sum %arg2 {axes = array<i64: 0>, keepdims = true} : (tensor<64x32xi8>) -> tensor<1x32xi64>
      %7 = burin.cast %6 {dtype = i32} : (tensor<1x32xi64>) -> tensor<1x32xi32>
      %8 = burin.broadcast_to %2 {shape = [1, 32]} : (tensor<i32>) -> tensor<1x32xi32>
      %9 = burin.mul %7, %8 : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
      %10 = burin.broadcast_to %9 {shape = [8, 32]} : (tensor<1x32xi32>) -> tensor<8x32xi32>
      %11 = burin.add %5, %10 : (tensor<8x32xi32>, tensor<8x32xi32>) -> tensor<8x32xi32>
      return %11 : tensor<8x32xi32>
    }
    ```
  }];
}

def PairBf16ProductsPass : Pass<"burin-pair-bf16-products", "::mlir::ModuleOp"> {
  let summary = "Packs pairs of rows of the right side of bf16 products";
  let description = [{
    For CPUs. AVX512-BF16 adds the products of two neighbouring bf16 to an f32 sum, that of the second ones first. Rows 2k
    and 2k + 1 of the right side, of each position of a window, become one row of i32. A matrix that is a transposed one
    is paired before it is transposed, where the two are neighbours. All products of bf16 are paired, whatever their sizes, because
    the order of the sum depends on it; only convolutions whose last columns are summed by lanes stay as they are.

    Before:
    ```mlir
    func.func @product(%x: tensor<8x63xbf16>, %w: tensor<63x32xbf16>) -> tensor<8x32xbf16> {
      %0 = burin.pack %w {width = 32 : i64} : (tensor<63x32xbf16>) -> tensor<1x63x32xbf16>
      %1 = burin.contract %x, %0 : (tensor<8x63xbf16>, tensor<1x63x32xbf16>) -> tensor<8x32xbf16>
      return %1 : tensor<8x32xbf16>
    }
    ```
    After:
    ```mlir
    func.func @product(%arg0: tensor<8x63xbf16>, %arg1: tensor<63x32xbf16>) -> tensor<8x32xbf16> {
      %0 = burin.bf16_pairs %arg1 {axis = 2 : i64} : (tensor<63x32xbf16>) -> tensor<32x32xi32>
      %1 = burin.pack %0 {width = 32 : i64} : (tensor<32x32xi32>) -> tensor<1x32x32xi32>
      %2 = burin.contract %arg0, %1 : (tensor<8x63xbf16>, tensor<1x32x32xi32>) -> tensor<8x32xbf16>
      return %2 : tensor<8x32xbf16>
    }
    ```
  }];
}

def EmulateF32GemmPass : Pass<"burin-emulate-f32-gemm", "::mlir::ModuleOp"> {
  let summary = "Computes f32 products on tiles of bf16 (bf16x3)";
  let description = [{
    For targets with AMX only. Each f32 is split into three bf16 terms; of the nine products of terms, the six that are not
    below the rounding of f32 are summed. Terms of a constant are computed here, those of a left operand by a separate
    kernel. Products with constants whose products of terms may be subnormal are not emulated.

    Before:
    ```mlir
    func.func @product(%x: tensor<128x512xf32>) -> tensor<128x256xf32> {
      %w = burin.constant dense<1.5> : tensor<8x512x32xf32>
      %0 = burin.contract %x, %w : (tensor<128x512xf32>, tensor<8x512x32xf32>) -> tensor<128x256xf32>
      return %0 : tensor<128x256xf32>
    }
    ```
    After:
    ```mlir
    func.func @product(%arg0: tensor<128x512xf32>) -> tensor<128x256xf32> {
      %0 = burin.bf16_terms %arg0 : (tensor<128x512xf32>) -> tensor<8x16x3x16x32xbf16>
      %1 = burin.constant dense_resource<constant> : tensor<8x16x3x2x16x32xbf16>
      %2 = burin.constant dense<1.500000e+00> : tensor<8x512x32xf32>
      %3 = burin.contract %arg0, %1 terms %0 : (tensor<128x512xf32>, tensor<8x16x3x2x16x32xbf16>, tensor<8x16x3x16x32xbf16>) -> tensor<128x256xf32>
      return %3 : tensor<128x256xf32>
    }
    ```
  }];
}
#endif
