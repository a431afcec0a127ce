// Emulates f32 products on bf16 tiles (bf16x3), for processors whose bf16 tiles are many times as fast as f32 vectors.
// Each f32 is split into three bf16 terms (3 × 8 bits of mantissa); six of the nine partial products are computed, the
// others are below the rounding of f32. Terms of a constant are computed here, terms of a left operand once, by a
// kernel.
//
// Results are as exact as f32 sums unless a partial product is subnormal, because tiles flush it to 0. Constants for
// which that is possible are left alone; left operands are checked at run time (see Bf16TermsOp).
// Source: Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations", 2019.
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include <array>
#include <bit>
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_EMULATEF32GEMMPASS
#include "passes/Passes.h.inc"

namespace {

// Below these sizes splitting costs more than it saves, also on several cores, where terms come from another core.
constexpr int64_t kLeastRows = 48, kLeastDepth = 64, kLeastColumns = 32, kLeastProducts = 12'000'000;
constexpr float kLeast = 0x1p-50f, kMost = 0x1p60f; // range of the magnitudes of a constant's nonzero elements

bool isDense(ContractOp op) {
  auto all = [](ArrayRef<int64_t> values, int64_t x) {
    return llvm::all_of(values, [&](int64_t v) { return v == x; });
  };
  return op.getBatch() == 0 && !op.getTail() && all(op.getKernel(), 1) && all(op.getStrides(), 1) &&
         all(op.getPadding(), 0);
}

bool isWorthIt(ContractOp op) {
  Shape lhs = shapeOf(op.getLhs());
  Dim rows = elements(Shape(lhs.begin(), lhs.end() - 1)), depth = lhs.back(), columns = shapeOf(op.getResult()).back();
  auto atLeast = [](const Dim &size, int64_t least) { return lowerBound(size).value_or(0) >= least; };
  return atLeast(rows, kLeastRows) && atLeast(depth, kLeastDepth) && atLeast(columns, kLeastColumns) &&
         atLeast(rows * depth * columns, kLeastProducts);
}

/// Splits x into three terms; terms of elements within the range above are never subnormal.
std::array<uint16_t, 3> termsOf(float x) {
  std::array<uint16_t, 3> terms;
  for (uint16_t &term : terms) {
    uint32_t bits = (std::bit_cast<uint32_t>(x) + 0x8000) & 0xffff0000; // the nearest bf16
    term = uint16_t(bits >> 16);
    x -= std::bit_cast<float>(bits);
  }
  return terms;
}

bool hasTerms(ArrayRef<float> numbers) {
  int all = 1; // bitwise and without branches, so that it runs at memory bandwidth
  for (float x : numbers)
    all &= int(x == 0) | (int(std::fabs(x) >= kLeast) & int(std::fabs(x) <= kMost));
  return all != 0;
}

/// Splits panels [panels, K, 32] into terms [panels, blocks, term, half of the columns, k % 16, (column, k / 16 % 2)].
std::vector<uint16_t> termsOfPanels(ArrayRef<float> panels, int64_t count, int64_t depth) {
  int64_t blocks = (depth + 31) / 32;
  std::vector<uint16_t> terms(size_t(count * blocks * 3 * 1024));
  for (int64_t panel = 0; panel < count; ++panel)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t column = 0; column < 32; ++column) {
        int64_t tile = ((panel * blocks + k / 32) * 3) * 2 + column / 16,
                at = k % 16 * 32 + column % 16 * 2 + k % 32 / 16;
        for (uint16_t term : termsOf(panels[size_t((panel * depth + k) * 32 + column)])) {
          terms[size_t(tile * 512 + at)] = term;
          tile += 2;
        }
      }
  return terms;
}

/// The terms of a packed constant, or null.
Value termsOfConstant(Value packed, llvm::DenseMap<Value, Value> &known) {
  auto constant = packed.getDefiningOp<ConstantOp>();
  if (!constant || dtypeOf(packed) != DType::f32)
    return {};
  auto [place, isNew] = known.try_emplace(packed);
  if (!isNew)
    return place->second;
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  ArrayRef<float> numbers(reinterpret_cast<const float *>(bytes.data()), bytes.size() / sizeof(float));
  if (!hasTerms(numbers))
    return {};
  Shape shape = shapeOf(packed);
  auto terms = std::make_shared<std::vector<uint16_t>>(termsOfPanels(numbers, shape[0].value(), shape[1].value()));
  OpBuilder b(constant);
  TensorSpec spec{DType::bf16, {shape[0], ceildiv(shape[1], 32), 3, 2, 16, 32}};
  ArrayRef<char> termBytes(reinterpret_cast<const char *>(terms->data()), terms->size() * sizeof(uint16_t));
  llvm::StringRef name = constant.getName().value_or("");
  return place->second = createConstant(b, constant.getLoc(), spec, termBytes,
                                        name.empty() ? "" : (name + " (terms)").str(), terms);
}

/// The terms of a left operand, shared by all products that read it.
Value termsOfLeft(Value lhs, llvm::DenseMap<Value, Value> &known) {
  Value &terms = known[lhs];
  if (terms)
    return terms;
  OpBuilder b(lhs.getContext());
  b.setInsertionPointAfterValue(lhs);
  Shape shape = shapeOf(lhs);
  Value matrix = lhs;
  if (shape.size() != 2)
    matrix = create<ReshapeOp>(b, lhs.getLoc(), {lhs},
                               {{"shape", Shape{elements(Shape(shape.begin(), shape.end() - 1)), shape.back()}}});
  return terms = create<Bf16TermsOp>(b, lhs.getLoc(), {matrix}, {});
}

struct EmulateF32GemmPass : impl::EmulateF32GemmPassBase<EmulateF32GemmPass> {
  void runOnOperation() override {
    llvm::DenseMap<Value, Value> terms;
    getOperation().walk([&](ContractOp op) {
      if (!isDense(op) || !isWorthIt(op))
        return;
      if (Value rhs = termsOfConstant(op.getRhs(), terms)) {
        op.getTermsMutable().assign(termsOfLeft(op.getLhs(), terms));
        op.getRhsMutable().assign(rhs);
      }
    });
  }
};

} // namespace

} // namespace burin::passes
