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
/// Replaces the type, and returns the one before.
std::optional<DType> exchangeAutocastType(std::optional<DType> type);

/// While one lives, this thread computes products in `type`. Without one, all ops keep the types that they are given:
/// so gradients are computed in the types of the way forward.
class AutocastTypeScope {
public:
  explicit AutocastTypeScope(std::optional<DType> type) : outer(exchangeAutocastType(type)) {}
  ~AutocastTypeScope() { exchangeAutocastType(outer); }
  AutocastTypeScope(const AutocastTypeScope &) = delete;
  AutocastTypeScope &operator=(const AutocastTypeScope &) = delete;

private:
  std::optional<DType> outer;
};

/// Replaces operands by casts of them, as the scope of this thread wants for the op; `casts` holds these.
void autocast(const ir::OpInfo &info, llvm::SmallVectorImpl<const Tensor *> &operands, std::deque<Tensor> &casts,
              const Location &where);

} // namespace burin::detail
