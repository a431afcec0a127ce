// The type that an Autocast scope of this thread computes products in.
#pragma once
#include "burin/tensor.h"
#include "ir/infer/OpInfo.h"
#include "llvm/ADT/SmallVector.h"
#include <deque>
#include <optional>

namespace burin::detail {

/// nullopt outside of all scopes.
std::optional<DType> autocastType();
/// Replaces the scope's type, and returns the one before.
std::optional<DType> exchangeAutocastType(std::optional<DType> type);

/// While one lives, all ops of this thread keep the types that they are given: gradients are computed in the types of
/// the way forward.
class NoAutocast {
public:
  NoAutocast() : outer(exchangeAutocastType(std::nullopt)) {}
  ~NoAutocast() { exchangeAutocastType(outer); }
  NoAutocast(const NoAutocast &) = delete;
  NoAutocast &operator=(const NoAutocast &) = delete;

private:
  std::optional<DType> outer;
};

/// Replaces operands by casts of them, as the scope of this thread wants for the op; `casts` holds these.
void autocast(const ir::OpInfo &info, llvm::SmallVectorImpl<const Tensor *> &operands, std::deque<Tensor> &casts,
              const Location &where);

} // namespace burin::detail
