// Builds graph ops with a compact notation, for passes that replace one op by several.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Creates ops at an insertion point, all with one location; result types are inferred. Nothing is broadcast or
/// promoted implicitly: operands of binary ops must have one shape and element type.
class GraphBuilder {
public:
  GraphBuilder(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  using NamedAttrs = std::vector<std::pair<llvm::StringRef, ir::Attr>>;
  template <class Op> mlir::Value op(llvm::ArrayRef<mlir::Value> operands, NamedAttrs attrs = {}) {
    return ir::create<Op>(b, loc, operands, std::move(attrs));
  }

  mlir::Value add(mlir::Value x, mlir::Value y) { return op<ir::AddOp>({x, y}); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return op<ir::SubOp>({x, y}); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return op<ir::MulOp>({x, y}); }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) { return op<ir::FmaOp>({x, y, z}); }
  mlir::Value reciprocal(mlir::Value x) { return op<ir::ReciprocalOp>({x}); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return op<ir::DivOp>({x, y}); }
  mlir::Value exp(mlir::Value x) { return op<ir::ExpOp>({x}); }
  mlir::Value log(mlir::Value x) { return op<ir::LogOp>({x}); }
  mlir::Value rsqrt(mlir::Value x) { return op<ir::RsqrtOp>({x}); }
  mlir::Value where(mlir::Value condition, mlir::Value x, mlir::Value y) { return op<ir::WhereOp>({condition, x, y}); }

  mlir::Value full(const Shape &shape, double value, DType dtype) {
    return op<ir::FullOp>({}, {{"shape", shape}, {"value", value}, {"dtype", dtype}});
  }
  /// `value` in the shape and element type of x.
  mlir::Value fullLike(mlir::Value x, double value) { return full(ir::shapeOf(x), value, ir::dtypeOf(x)); }
  mlir::Value iota(const Shape &shape, int64_t axis, DType dtype) {
    return op<ir::IotaOp>({}, {{"shape", shape}, {"dtype", dtype}, {"axis", axis}});
  }

  // These return x if they would not change it.
  mlir::Value cast(mlir::Value x, DType dtype) {
    return ir::dtypeOf(x) == dtype ? x : op<ir::CastOp>({x}, {{"dtype", dtype}});
  }
  mlir::Value reshape(mlir::Value x, const Shape &shape) {
    return ir::shapeOf(x) == shape ? x : op<ir::ReshapeOp>({x}, {{"shape", shape}});
  }
  /// The elements [starts, stops) of x.
  mlir::Value slice(mlir::Value x, const Shape &starts, const Shape &stops) {
    return op<ir::SliceOp>({x},
                           {{"starts", starts}, {"stops", stops}, {"steps", std::vector<int64_t>(starts.size(), 1)}});
  }
  mlir::Value broadcast(mlir::Value x, const Shape &shape) {
    return ir::shapeOf(x) == shape ? x : op<ir::BroadcastToOp>({x}, {{"shape", shape}});
  }
  mlir::Value broadcastLike(mlir::Value x, mlir::Value like) { return broadcast(x, ir::shapeOf(like)); }
  mlir::Value transpose(mlir::Value x, std::vector<int64_t> perm) {
    for (size_t i = 0; i < perm.size(); ++i)
      if (perm[i] != int64_t(i))
        return op<ir::TransposeOp>({x}, {{"perm", std::move(perm)}});
    return x;
  }
  mlir::Value transposeLastTwo(mlir::Value x) {
    std::vector<int64_t> perm(ir::shapeOf(x).size());
    for (size_t i = 0; i < perm.size(); ++i)
      perm[i] = int64_t(i);
    std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
    return transpose(x, std::move(perm));
  }

  /// A reduction that keeps its dimensions.
  template <class Op> mlir::Value reduce(mlir::Value x, std::vector<int64_t> axes, NamedAttrs attrs = {}) {
    attrs.insert(attrs.begin(), {{"axes", std::move(axes)}, {"keepdims", true}});
    return op<Op>({x}, std::move(attrs));
  }
  /// A vector with one element per channel, repeated over x [N, C, …].
  mlir::Value perChannel(mlir::Value v, const Shape &x, size_t channelDim = 1) {
    Shape shape(x.size() - channelDim, Dim(1));
    shape[0] = ir::shapeOf(v)[0];
    return broadcast(reshape(v, shape), x);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
};

/// Element type of accumulators: f32 for 16-bit and 8-bit floats, as in PyTorch.
inline DType wideType(DType t) { return isFloat(t) && byteWidth(t) <= 2 ? DType::f32 : t; }

/// first, first + 1, …, rank - 1.
inline std::vector<int64_t> axesFrom(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < rank; ++axis)
    axes.push_back(axis);
  return axes;
}

inline std::vector<int64_t> concatenated(std::initializer_list<llvm::ArrayRef<int64_t>> lists) {
  std::vector<int64_t> all;
  for (llvm::ArrayRef<int64_t> list : lists)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// Makes `operand` the result of a copying kernel, so that it has its own buffer. Function results that are arguments,
/// constants or repeated need that, and initial states of loops.
void copyByKernel(mlir::OpOperand &operand);

/// Whether `v` depends on constants alone; false for results of ops with regions, such as loops.
bool isConstantExpression(mlir::Value v);

} // namespace burin::passes
