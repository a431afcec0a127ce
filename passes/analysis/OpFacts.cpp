#include "passes/analysis/OpFacts.h"

using namespace mlir;

namespace burin::passes {

static constexpr OpFacts table[] = {
#include "passes/analysis/OpFacts.inc"
};

std::optional<size_t> tableIndexOf(Operation *op) {
  const ir::OpInfo *info = op ? ir::opInfo(op) : nullptr;
  return info ? std::optional(size_t(info - ir::opTable().data())) : std::nullopt;
}

const OpFacts &factsOf(Operation *op) {
  static constexpr OpFacts none, control{FusionKind::Sequential};
  if (std::optional<size_t> index = tableIndexOf(op))
    return table[*index];
  return op && ir::isOwnStep(op) ? control : none;
}

} // namespace burin::passes
