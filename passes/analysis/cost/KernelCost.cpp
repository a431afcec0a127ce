#include "passes/analysis/cost/KernelCost.h"
#include "ir/dialect/Contract.h"
#include "passes/TargetIndependent.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

/// Returns nullopt if the expression of sizes is too large.
template <class F> static std::optional<Dim> ifExpressible(F &&expression) try {
  return expression();
} catch (const Error &) {
  return std::nullopt;
}

int64_t typicalSize(const Dim &size) {
  return size.evaluate([](std::string_view) { return std::optional<int64_t>(kTypicalSize); }).value_or(0);
}

Dim byteSize(Value v) { return elements(shapeOf(v)) * Dim(int64_t(byteWidth(dtypeOf(v)))); }

Dim bytesRead(BlockArgument operand, Value source) {
  Dim bytes = 0;
  for (OpOperand &use : operand.getUses()) {
    if (!factsOf(use.getOwner()).selects || use.getOperandNumber() != 0)
      return byteSize(source);
    bytes = bytes + byteSize(use.getOwner()->getResult(0));
  }
  return ifExpressible([&] { return min(bytes, byteSize(source)); }).value_or(byteSize(source));
}

namespace {

// ---- rules that op definitions name as `flops`
Dim ofResult(Operation &op) { return elements(shapeOf(op.getResult(0))); }

Dim ofOperands(Operation &op) {
  return op.getNumOperands() ? max(ofResult(op), elements(shapeOf(op.getOperand(0)))) : ofResult(op);
}

Dim ofContraction(Operation &op) {
  auto contract = cast<ContractOp>(op);
  Shape packed = shapeOf(contract.getRhs());
  Dim depth = contract.getTerms() ? shapeOf(contract.getLhs()).back() : packed[packed.size() - 2];
  return ofResult(op) * depth * Dim(isOfPairs(contract) ? 4 : 2);
}

Dim ofAttention(Operation &op) {
  auto attention = cast<ScaledDotProductAttentionOp>(op);
  Shape scores = shapeOf(attention.getQuery()), value = shapeOf(attention.getValue());
  return elements(Shape(scores.begin(), scores.end() - 1)) * value[value.size() - 2] * (scores.back() + value.back()) *
         Dim(2);
}

/// Five products: of queries and keys, of gradient and values, and those of the three gradients.
Dim ofAttentionGradient(Operation &op) {
  auto attention = cast<AttentionGradientOp>(op);
  Shape query = shapeOf(attention.getQuery()), key = shapeOf(attention.getKey());
  return elements(query) * key[key.size() - 2] * Dim(10);
}

Dim ofConvolution(Operation &op) {
  Dim work = ofResult(op);
  Shape taps = shapeOf(cast<ConvOp>(op).getWeight()); // [kernel…, C/groups, O]
  for (size_t i = 0; i + 1 < taps.size(); ++i)
    work = work * taps[i];
  return work * Dim(2);
}

constexpr Dim (*rules[])(Operation &) = {
#define OP_RULE(op, rule) rule,
#include "passes/analysis/FlopRules.inc"
};

Dim flopsOf(Operation &op) {
  std::optional<size_t> index = tableIndexOf(&op);
  return index ? rules[*index](op) : Dim(0);
}

} // namespace

Dim flopsOf(KernelOp kernel) {
  Dim total = 0;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (std::optional<Dim> sum = ifExpressible([&] { return total + flopsOf(op); }))
      total = *sum;
  return total;
}

} // namespace burin::passes
