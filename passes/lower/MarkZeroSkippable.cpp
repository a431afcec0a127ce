// Marks products that may skip zeros. The product of one row and a large matrix is bound by reading the matrix; a
// kernel can skip the rows of the matrix that meet a zero on the left, which are common after a relu. That is exact
// unless the matrix contains infinities or NaN (0 * inf is NaN), which this pass checks.
#include "ir/dialect/Burin.h"
#include "passes/Passes.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_MARKZEROSKIPPABLEPASS
#include "passes/Passes.h.inc"

namespace {

/// Whether it is a matrix product whose left operand is, or may be, one row.
bool mayHaveOneRow(ContractOp op) {
  Shape result = shapeOf(op.getResult());
  return op.getBatch() == 0 && result.size() == 2 && (!result[0].isStatic() || result[0] == Dim(1));
}

bool isFinite(ArrayRef<char> f32) {
  // Infinity and NaN have all exponent bits set. No branches, so that it runs at memory bandwidth.
  constexpr uint32_t exponent = 0x7f800000;
  bool finite = true;
  for (size_t i = 0; i + 4 <= f32.size(); i += 4) {
    uint32_t bits;
    std::memcpy(&bits, f32.data() + i, 4);
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

bool isLargeAndFinite(Value matrix) {
  auto constant = matrix.getDefiningOp<ConstantOp>();
  if (!constant || dtypeOf(matrix) != DType::f32)
    return false;
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  return bytes.size() >= size_t(kCachedBytes) && isFinite(bytes);
}

struct MarkZeroSkippablePass : impl::MarkZeroSkippablePassBase<MarkZeroSkippablePass> {
  void runOnOperation() override {
    getOperation().walk([](ContractOp op) {
      if (mayHaveOneRow(op) && isLargeAndFinite(op.getRhs()))
        op.setFinite(true);
    });
  }
};

} // namespace

} // namespace burin::passes
