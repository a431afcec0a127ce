#include "frontend/tensor/context/AutocastScope.h"
#include "burin/ops.h"
#include "burin/training/autocast.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/TensorState.h"
#include <utility>

namespace burin {

namespace detail {

static thread_local std::optional<DType> current;

std::optional<DType> autocastType() { return current; }
std::optional<DType> exchangeAutocastType(std::optional<DType> type) { return std::exchange(current, type); }

static bool isCast(const Tensor &x, DType wanted, const Location &where) {
  const TensorState &state = stateOf(x, where);
  const DType type = state.spec.dtype;
  return !state.weak && type != wanted && (type == DType::f32 || type == DType::f16 || type == DType::bf16);
}

void autocast(const ir::OpInfo &info, llvm::SmallVectorImpl<const Tensor *> &operands, std::deque<Tensor> &casts,
              const Location &where) {
  if (!current || info.autocast == ir::Autocast::None)
    return;
  const DType wanted = info.autocast == ir::Autocast::Lower ? *current : DType::f32;
  for (const Tensor *&operand : operands)
    if (operand && isCast(*operand, wanted, where))
      operand = &casts.emplace_back(operand->to(wanted, where));
}

Tensor castForProduct(const Tensor &x, const Location &where) {
  return current && isCast(x, *current, where) ? x.to(*current, where) : x;
}
Tensor castForLoss(const Tensor &x, const Location &where) {
  return current && isCast(x, DType::f32, where) ? x.to(DType::f32, where) : x;
}

} // namespace detail

Autocast::Autocast(DType dtype, Location where) : Autocast(dtype, true, where) {}
Autocast::Autocast(DType dtype, bool enabled, Location where) {
  if (dtype != DType::f16 && dtype != DType::bf16)
    throw Error(detail::inScope(where), "Autocast",
                "products are computed in f16 or bf16, not in " + std::string(name(dtype)));
  outer = detail::exchangeAutocastType(enabled ? std::optional(dtype) : std::nullopt);
}
Autocast::~Autocast() { detail::exchangeAutocastType(outer); }

} // namespace burin
