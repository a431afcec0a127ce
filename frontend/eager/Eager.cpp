#include "frontend/eager/Eager.h"
#include "frontend/eager/Move.h"
#include "frontend/eager/Record.h"
#include "frontend/eager/Tape.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/tensor/Creation.h"
#include "frontend/tensor/EagerKey.h"
#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/OnDevice.h"
#include <unordered_map>

namespace burin::detail {

namespace {
/// A checked and compiled call for certain element types, shapes and attributes.
struct Plan {
  std::vector<TensorSpec> results;
  std::vector<DType> scalarTypes; // per operand: the type as which a scalar is passed
  ExecutableRef executable;       // null: the result shares the elements of the first operand
  mutable VjpTable gradients;
};

/// Cache of calls. Cleared when full, so that programs whose shapes never repeat do not grow it without bound.
class Plans {
  static constexpr size_t kMost = 8192;
  std::mutex mutex;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash, std::equal_to<>> plans;

public:
  std::shared_ptr<const Plan> find(const Key &key) {
    std::lock_guard lock(mutex);
    auto at = plans.find(key);
    return at == plans.end() ? nullptr : at->second;
  }
  void insert(Key key, std::shared_ptr<const Plan> plan) {
    std::lock_guard lock(mutex);
    if (plans.size() >= kMost)
      plans.clear();
    plans.insert_or_assign(std::move(key), std::move(plan));
  }
};
Plans &plans() {
  static auto *all = new Plans; // tasks and other threads may still run when the process exits
  return *all;
}

Key keyOf(const ir::OpInfo &info, std::span<const Tensor *const> operands, std::span<const ir::Attr> attrs,
          Device device) {
  Key key;
  key.add(uint64_t(&info - ir::opTable().data()));
  if (device.is_cuda())
    key.add(uint64_t(-2 - device.index()));
  for (const ir::Attr &attr : attrs)
    key.add(attr);
  for (const Tensor *operand : operands)
    if (operand) {
      const TensorState &state = *Access::state(*operand);
      key.add(state.spec, state.weak);
    } else {
      key.add(uint64_t(-1));
    }
  return key;
}

void requireEager(const ir::OpInfo &info, std::span<const Tensor *const> operands, const Location &where) {
  for (const Tensor *operand : operands)
    if (operand && std::holds_alternative<TracedValue>(stateOf(*operand, where).value))
      throw Error(where, info.name,
                  "a tensor was used after the trace that it belongs to; return it from the traced function instead");
}

/// Ops that change neither elements nor their order.
bool sharesElements(const CheckedCall &call, const TensorSpec &operand) {
  static const ir::OpInfo *views[] = {ir::findOp("reshape"), ir::findOp("squeeze"), ir::findOp("unsqueeze"),
                                      ir::findOp("dropout")};
  static const ir::OpInfo *identities[] = {ir::findOp("cast"), ir::findOp("broadcast_to")};
  return llvm::is_contained(views, &call.info) ||
         (llvm::is_contained(identities, &call.info) && call.results[0] == operand);
}

std::shared_ptr<const Plan> makePlan(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                                     std::vector<ir::Attr> attrs, Device device, const Location &where) {
  std::vector<std::optional<TensorSpec>> specs;
  llvm::SmallVector<bool> weak;
  for (const Tensor *operand : operands) {
    const TensorState *state = operand ? Access::state(*operand).get() : nullptr;
    specs.push_back(state ? std::optional(state->spec) : std::nullopt);
    weak.push_back(state && state->weak);
  }
  CheckedCall call = checkCall(info, specs, weak, attrs, where);
  auto plan = std::make_shared<Plan>();
  plan->results = call.results;
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i] && weak[i])
      specs[i]->dtype = call.operands[i]->dtype;
  for (const auto &spec : specs)
    plan->scalarTypes.push_back(spec ? spec->dtype : DType::f32);
  if (specs.empty() || !sharesElements(call, *specs[0]))
    plan->executable = eagerKernel(info, specs, attrs, call.results, where, device);
  return plan;
}
} // namespace

std::vector<Tensor> callEagerly(const ir::OpInfo &info, std::span<const Tensor *const> given,
                                std::vector<ir::Attr> attrs, const Location &where) {
  if (isMadeOnHost(info))
    return {createOnHost(info, std::move(attrs), where)};
  requireEager(info, given, where);
  AlignedOperands aligned(given, info.name, where);
  std::span<const Tensor *const> operands = aligned.operands();
  Key key = keyOf(info, operands, attrs, aligned.device());
  std::shared_ptr<const Plan> plan = plans().find(key);
  if (!plan) {
    plan = makePlan(info, operands, attrs, aligned.device(), where);
    plans().insert(std::move(key), plan);
  }
  std::vector<Tensor> results;
  constexpr auto atOnce = std::chrono::microseconds(2); // callers expect an asynchronous call
  if (plan->executable)
    results = launch(plan->executable, 0, operands, plan->scalarTypes, plan->results, atOnce, info.name, where);
  else
    results.push_back(Access::make(plan->results[0], storageOf(*Access::state(*operands[0]))));
  if (aligned.allFollow())
    for (const Tensor &result : results)
      Access::state(result)->follows = true;
  if (is_anomaly_detected())
    for (const Tensor &result : results)
      checkFinite(result, info.name, where, "its result");
  if (isRecorded(operands))
    recordCall(plan->gradients, info, operands, attrs, plan->scalarTypes, results, where);
  return results;
}

} // namespace burin::detail
