// Recording of eager calls on the tape.
#pragma once
#include "frontend/eager/Vjp.h"
#include <map>

namespace burin::detail {

/// Cache of the gradients of a call on one device, by the operands that need one.
class VjpTable {
public:
  /// `isOnHost`: see Vjp.
  std::shared_ptr<const Vjp> find(const std::shared_ptr<const EagerCall> &call, const std::vector<bool> &isNeeded,
                                  bool isOnHost);

private:
  std::mutex mutex;
  std::map<std::vector<bool>, std::shared_ptr<const Vjp>> table;
};

/// Records that `operands` have given `results`, and connects these with the tape. `table` belongs to the call.
void recordCall(VjpTable &table, const std::shared_ptr<const EagerCall> &call, std::span<const Tensor *const> operands,
                std::span<const DType> scalarTypes, std::vector<Tensor> &results, const Location &where);

} // namespace burin::detail
