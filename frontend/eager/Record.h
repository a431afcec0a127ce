// Recording of eager calls on the tape.
#pragma once
#include "frontend/eager/Vjp.h"
#include <map>

namespace burin::detail {

/// Cache of the gradients of a call, by the operands that need one.
class VjpTable {
public:
  std::shared_ptr<const Vjp> find(const std::vector<bool> &isNeeded, const std::function<CallForm()> &form);

private:
  std::mutex mutex;
  std::map<std::vector<bool>, std::shared_ptr<const Vjp>> table;
};

/// Records that `operands` have given `results`, and connects these with the tape.
void recordCall(VjpTable &table, const ir::OpInfo &info, std::span<const Tensor *const> operands,
                const std::vector<ir::Attr> &attrs, std::span<const DType> scalarTypes, std::vector<Tensor> &results,
                const Location &where);

} // namespace burin::detail
