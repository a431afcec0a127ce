#include "frontend/tensor/functions/Movement.h"
#include "ir/reference/ReferenceUtil.h"
#include "llvm/ADT/SmallVector.h"

namespace burin::detail {

namespace {
std::vector<int64_t> sizesOf(const Shape &shape) {
  std::vector<int64_t> sizes;
  for (const Dim &size : shape)
    sizes.push_back(size.value());
  return sizes;
}

/// One call, until it has run.
struct Movement {
  std::shared_ptr<const CheckedCall> call;
  ir::MoveKernel kernel;
  llvm::SmallVector<StorageRef, 4> inputs, outputs;
  Location where;

  void operator()() {
    ir::MoveCall moved{call->info, call->attrs, {}, {}, byteWidth(call->results[0].dtype), nullptr, {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      requireElements(*inputs[i], where);
      moved.operands.push_back({static_cast<char *>(inputs[i]->buffer->data()), sizesOf(call->operands[i]->shape)});
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i]->buffer = allocate(byteCount(call->results[i]), where);
      moved.results.push_back({static_cast<char *>(outputs[i]->buffer->data()), sizesOf(call->results[i].shape)});
    }
    std::vector<char> fill;
    if (call->info.name == std::string_view("pad")) {
      fill = ir::ref::scalar(call->results[0].dtype, moved.attr<double>("value")).toBytes();
      moved.fill = fill.data();
    }
    if (!kernel(moved))
      throw Error(where, call->info.name, moved.error);
  }
};
} // namespace

bool canMove(std::span<const Tensor *const> operands) {
  return llvm::all_of(operands, [](const Tensor *operand) {
    return operand && std::holds_alternative<StorageRef>(Access::state(*operand)->value);
  });
}

std::vector<Tensor> moveOnHost(std::shared_ptr<const CheckedCall> call, ir::MoveKernel kernel,
                               std::span<const Tensor *const> operands, const Location &where) {
  constexpr size_t kSmall = size_t(64) << 10; // moving these is faster than waking a thread
  Movement work{std::move(call), kernel, {}, {}, where};
  llvm::SmallVector<rt::Task *, 4> needed, before;
  for (const Tensor *operand : operands) {
    const StorageRef &storage = work.inputs.emplace_back(std::get<StorageRef>(Access::state(*operand)->value));
    if (!isComplete(*storage))
      (storage->isState ? before : needed).push_back(storage->task.get());
  }
  std::vector<Tensor> results;
  size_t bytes = 0;
  for (const TensorSpec &spec : work.call->results) {
    results.push_back(Access::make(spec, work.outputs.emplace_back(std::make_shared<Storage>())));
    bytes += byteCount(spec);
  }
  if (needed.empty() && before.empty() && bytes <= kSmall) {
    work();
    return results;
  }
  const auto outputs = work.outputs; // the work may be deleted before the task is known here
  rt::TaskRef task = rt::Engine::shared().enqueue({needed, before}, bytes, std::move(work), false);
  for (const StorageRef &storage : outputs)
    storage->task = task;
  return results;
}

} // namespace burin::detail
