// The type in which an Autocast scope of this thread computes products.
#pragma once
#include "burin/tensor.h"
#include "ir/infer/OpInfo.h"
#include "llvm/ADT/SmallVector.h"
#include <deque>
#include <optional>

namespace burin::detail {

/// nullopt outside of all scopes.
std::optional<DType> autocastType();
/// Replaces the type, and returns the previous one.
std::optional<DType> exchangeAutocastType(std::optional<DType> type);

/// During its lifetime, this thread computes products in `type`; with nullopt, ops keep the types of their operands, as
/// gradients do, which are computed in the types of the forward pass.
class AutocastTypeScope {
public:
  explicit AutocastTypeScope(std::optional<DType> type) : outer(exchangeAutocastType(type)) {}
  ~AutocastTypeScope() { exchangeAutocastType(outer); }
  AutocastTypeScope(const AutocastTypeScope &) = delete;
  AutocastTypeScope &operator=(const AutocastTypeScope &) = delete;

private:
  std::optional<DType> outer;
};

/// Replaces operands by casts, as the scope of this thread requires for the op; `casts` owns these.
void autocast(const ir::OpInfo &info, llvm::SmallVectorImpl<const Tensor *> &operands, std::deque<Tensor> &casts,
              const Location &where);

/// x in the type that a scope of this thread computes products in, or in f32 for losses: for operands of functions that
/// are made of several ops, such as biases. x itself outside of scopes, and of other types than f32, f16 and bf16.
Tensor castForProduct(const Tensor &x, const Location &where);
Tensor castForLoss(const Tensor &x, const Location &where);

} // namespace burin::detail
