#include "frontend/eager/Eager.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/eager/Move.h"
#include "frontend/eager/Record.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/tensor/functions/Movement.h"
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace burin::detail {

namespace {
/// Ops that change neither elements nor their order.
bool sharesElements(const CheckedCall &call, const TensorSpec &operand) {
  static const ir::OpInfo *views[] = {ir::findOp("reshape"), ir::findOp("squeeze"), ir::findOp("unsqueeze"),
                                      ir::findOp("dropout")};
  static const ir::OpInfo *identities[] = {ir::findOp("cast"), ir::findOp("broadcast_to")};
  return llvm::is_contained(views, &call.info) ||
         (llvm::is_contained(identities, &call.info) && call.results[0] == operand);
}

/// A checked call, and how it is run: by compiled code; by the host, if it only moves elements; or by neither, as the
/// result shares the elements of the first operand. A call that repeats gets code for its own sizes and attributes if
/// the first calls have done without: products of any size take up to 1.25 times as long, and the host moves elements
/// on one thread.
class Plan {
  static constexpr uint32_t kFewCalls = 32;             // compiling takes milliseconds
  static constexpr size_t kFewBytes = size_t(64) << 10; // the host moves these in microseconds
  EagerCode code;                 // without an executable if there is a mover, or elements are shared
  ir::MoveKernel mover = nullptr; // for calls without code
  bool mayImprove = false;
  mutable std::atomic<uint32_t> calls{0}; // those before the code for their sizes
  mutable std::once_flag improving, compiling;
  mutable ExecutableRef improved, moving; // for the call's own sizes; of a mover, for any
  Device device;

  size_t movedBytes() const {
    size_t bytes = 0;
    for (const TensorSpec &result : call->checked.results)
      bytes += byteCount(result);
    return bytes;
  }

  /// Counts one more call.
  bool isRepeated() const {
    return mayImprove && (calls.load(std::memory_order_relaxed) >= kFewCalls ||
                          calls.fetch_add(1, std::memory_order_relaxed) + 1 >= kFewCalls);
  }

  /// The code for one more call; null: there is none. The mover cannot run calls that need code.
  const ExecutableRef &executable(bool needsCode, const Location &where) const {
    if (isRepeated()) {
      std::call_once(improving, [&] { improved = eagerKernelOfSizes(*call, device, where); });
      return improved;
    }
    if (!needsCode)
      return code.executable;
    std::call_once(compiling, [&] { moving = eagerKernel(*call, device, where).executable; });
    return moving;
  }

public:
  std::shared_ptr<const EagerCall> call; // its gradients own it, too
  std::vector<DType> scalarTypes;        // per operand: the type as which a scalar is passed
  mutable VjpTable gradients;

  Plan(std::shared_ptr<const EagerCall> checked, Device on, const Location &where)
      : device(on), call(std::move(checked)) {
    for (const auto &spec : call->operands)
      scalarTypes.push_back(spec ? spec->dtype : DType::f32);
    if (!call->operands.empty() && sharesElements(call->checked, *call->operands[0]))
      return;
    mover = device.is_cuda() ? nullptr : movementOf(*call);
    if (!mover)
      code = eagerKernel(*call, device, where);
    const bool isProduct = call->info.autocast == ir::Autocast::Lower;
    // Kernels of GPUs may add in another order if they know sizes.
    mayImprove =
        mover ? movedBytes() > kFewBytes : code.isForAnySize && (isProduct || code.hasOtherSizes) && !device.is_cuda();
  }

  /// The results of one more call.
  std::vector<Tensor> run(std::span<const Tensor *const> operands, const Location &where) const {
    constexpr auto atOnce = std::chrono::microseconds(2); // callers expect an asynchronous call
    if (const ExecutableRef &runs = executable(mover && !canMove(operands), where))
      return launch(runs, 0, operands, scalarTypes, call->checked.results, atOnce, call->info.name, where);
    if (mover)
      return moveOnHost({call, &call->checked}, mover, operands, where);
    return {Access::make(call->checked.results[0], storageOf(*Access::state(*operands[0])))};
  }
};

/// Cache of calls. Cleared when full, so that programs whose shapes never repeat do not grow it without bound.
class Plans {
  static constexpr size_t kMost = 8192;
  std::mutex mutex;
  std::unordered_map<PlacedKey, std::shared_ptr<const Plan>, PlacedKeyHash> plans;

public:
  std::shared_ptr<const Plan> find(const PlacedKey &at) {
    std::lock_guard lock(mutex);
    auto known = plans.find(at);
    return known == plans.end() ? nullptr : known->second;
  }
  void insert(PlacedKey at, std::shared_ptr<const Plan> plan) {
    std::lock_guard lock(mutex);
    if (plans.size() >= kMost)
      plans.clear();
    plans.insert_or_assign(std::move(at), std::move(plan));
  }
};
Plans &plans() {
  static auto *all = new Plans; // tasks and other threads may still run when the process exits
  return *all;
}

Key keyOf(const ir::OpInfo &info, std::span<const Tensor *const> operands, std::span<const ir::Attr> attrs) {
  Key key;
  key.addCall(info, attrs);
  for (const Tensor *operand : operands)
    if (operand) {
      const TensorState &state = *Access::state(*operand);
      key.add(state.spec, state.weak);
    } else {
      key.addAbsent();
    }
  return key;
}

void requireEager(const ir::OpInfo &info, std::span<const Tensor *const> operands, const Location &where) {
  for (const Tensor *operand : operands)
    if (operand && std::holds_alternative<TracedValue>(stateOf(*operand, where).value))
      throw Error(where, info.name,
                  "a tensor was used after the trace that it belongs to, or on another thread; return it from the "
                  "traced function, and call ops of that function on its own thread");
}

std::shared_ptr<const EagerCall> checkedCall(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                                             std::vector<ir::Attr> attrs, Key key, const Location &where) {
  std::vector<std::optional<TensorSpec>> specs;
  llvm::SmallVector<bool> weak;
  for (const Tensor *operand : operands) {
    const TensorState *state = operand ? Access::state(*operand).get() : nullptr;
    specs.push_back(state ? std::optional(state->spec) : std::nullopt);
    weak.push_back(state && state->weak);
  }
  CheckedCall checked = checkCall(info, specs, weak, attrs, where);
  for (size_t i = 0; i < specs.size(); ++i)
    if (weak[i])
      specs[i]->dtype = checked.operands[i]->dtype;
  return std::make_shared<EagerCall>(info, std::move(specs), std::move(attrs), std::move(checked), std::move(key));
}
} // namespace

std::vector<Tensor> callEagerly(const ir::OpInfo &info, std::span<const Tensor *const> given,
                                std::vector<ir::Attr> attrs, const Location &where) {
  if (isMadeOnHost(info))
    return {createOnHost(info, std::move(attrs), where)};
  requireEager(info, given, where);
  AlignedOperands aligned(given, info.name, where);
  std::span<const Tensor *const> operands = aligned.operands();
  PlacedKey at{keyOf(info, operands, attrs), aligned.device()};
  std::shared_ptr<const Plan> plan = plans().find(at);
  if (!plan) {
    plan = std::make_shared<Plan>(checkedCall(info, operands, std::move(attrs), at.key, where), at.device, where);
    plans().insert(std::move(at), plan);
  }
  std::vector<Tensor> results = plan->run(operands, where);
  if (aligned.allFollow())
    for (const Tensor &result : results)
      Access::state(result)->follows = true;
  if (is_anomaly_detected())
    for (const Tensor &result : results)
      checkFinite(result, info.name, where, "its result");
  if (isRecorded(operands))
    recordCall(plan->gradients, plan->call, operands, plan->scalarTypes, results, where);
  return results;
}

} // namespace burin::detail
