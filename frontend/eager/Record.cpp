#include "frontend/eager/Record.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/OnDevice.h"

namespace burin::detail {

std::shared_ptr<const Vjp> VjpTable::find(const std::shared_ptr<const EagerCall> &call,
                                          const std::vector<bool> &isNeeded, bool isOnHost) {
  std::lock_guard lock(mutex);
  std::shared_ptr<const Vjp> &known = table[isNeeded];
  if (!known)
    known = std::make_shared<Vjp>(call, isNeeded, isOnHost);
  return known;
}

namespace {

/// A call of an op, with the operands and results that its gradient reads.
class TapeCall : public TapeNode {
public:
  TapeCall(std::shared_ptr<const Vjp> vjp, std::span<const Tensor *const> operands, std::span<const DType> scalarTypes,
           std::vector<Tensor> &made, const Location &where)
      : TapeNode(vjp->call().info.name, where), vjp(std::move(vjp)) {
    for (size_t i = 0; i < operands.size(); ++i) {
      edges.push_back(operands[i] && this->vjp->needs(i) ? edgeOf(*operands[i]) : TapeEdge{});
      savedOperands.push_back(operands[i] && this->vjp->readsOperand(i)
                                  ? saved(*operands[i], scalarTypes[i], deviceOf(*Access::state(made[0])))
                                  : Tensor());
    }
    for (size_t i = 0; i < made.size(); ++i) {
      results.push_back(made[i].spec(where));
      savedResults.push_back(this->vjp->readsResult(i) ? made[i] : Tensor());
    }
  }

  std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) override {
    const auto known = std::ranges::find_if(gradients, &Tensor::defined);
    std::optional<Beside> scope;
    if (known != gradients.end())
      scope.emplace(*known, place);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].defined() && isFloat(results[i].dtype))
        gradients[i] = zeros(results[i].shape, results[i].dtype, place);
    if (!recorded)
      return vjp->run(savedOperands, savedResults, gradients, place);
    std::vector<Tensor> operands, outputs;
    for (size_t i = 0; i < savedOperands.size(); ++i)
      operands.push_back(connected(savedOperands[i], edges[i], vjp->call().operands[i]));
    for (size_t i = 0; i < savedResults.size(); ++i) {
      bool isVarying = isFloat(results[i].dtype);
      outputs.push_back(
          connected(savedResults[i], isVarying ? TapeEdge{shared_from_this(), uint32_t(i)} : TapeEdge{}, results[i]));
      if (!gradients[i].defined())
        gradients[i] = zeros(results[i].shape, results[i].dtype, place);
    }
    return vjp->runRecorded(operands, outputs, gradients, place);
  }

  bool leaveRows(std::span<const Tensor> gradients) override {
    auto *leaf = dynamic_cast<TapeLeaf *>(edges[0].node.get());
    if (!leaf || !leaf->keepsRows || !leaf->hooks.empty() || !gradients[0].defined())
      return false;
    const EagerCall &call = vjp->call();
    if (&call.info != &ir::opInfo(ir::OpId::take) || std::get<int64_t>(call.attrs[0]) != 0 ||
        !savedOperands[1].defined())
      return false;
    const Tensor &indices = savedOperands[1];
    Shape rows = call.operands[0]->shape;
    rows[0] = elements(indices.shape());
    leaf->addRows({reshape(indices, {rows[0]}), reshape(gradients[0], rows)});
    return true;
  }

  void release() override {
    savedOperands.clear();
    savedResults.clear();
    // Edges stay, so that a second pass is rejected instead of ending here unnoticed.
  }

private:
  std::shared_ptr<const Vjp> vjp;
  std::vector<Tensor> savedOperands; // with their tape nodes, which `edges` own too
  std::vector<Tensor> savedResults;  // without this node, which would own itself

  Tensor saved(const Tensor &x, DType scalarType, Device device) const {
    const TensorState &state = *Access::state(x);
    if (!std::holds_alternative<ScalarValue>(state.value))
      return x;
    if (device.is_cuda())
      return Access::make({scalarType, {}}, scalarOn(device, state, scalarType, op, place));
    char bytes[8];
    scalarBytes(state, scalarType, bytes, {}, "");
    auto storage = std::make_shared<Storage>();
    storage->buffer = allocate(byteWidth(scalarType), {});
    std::memcpy(storage->buffer->data(), bytes, byteWidth(scalarType));
    return Access::make({scalarType, {}}, std::move(storage));
  }

  /// Connects x with the tape. A value that is not saved is not read, so zeros replace it.
  static Tensor connected(const Tensor &x, TapeEdge edge, const std::optional<TensorSpec> &spec) {
    if (!x.defined() && !spec)
      return {};
    Tensor value = x.defined() ? x : zeros(spec->shape, spec->dtype);
    return edge.node ? withEdge(value, std::move(edge)) : value;
  }
};

} // namespace

void recordCall(VjpTable &table, const std::shared_ptr<const EagerCall> &call, std::span<const Tensor *const> operands,
                std::span<const DType> scalarTypes, std::vector<Tensor> &results, const Location &where) {
  std::vector<bool> isNeeded;
  for (const Tensor *operand : operands)
    isNeeded.push_back(operand && edgeOf(*operand).node != nullptr);
  if (std::ranges::none_of(results, [](const Tensor &result) { return isFloat(Access::state(result)->spec.dtype); }))
    return;
  const auto *storage = std::get_if<StorageRef>(&Access::state(results[0])->value);
  const bool isOnHost = storage && !(*storage)->gpu;
  auto node = std::make_shared<TapeCall>(table.find(call, isNeeded, isOnHost), operands, scalarTypes, results, where);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::shared_ptr<TensorState> &state = Access::state(results[i]);
    if (!isFloat(state->spec.dtype))
      continue;
    if (state.use_count() > 1) { // the node owns it, too
      results[i] = withEdge(results[i], {node, uint32_t(i)});
      continue;
    }
    state->node = node;
    state->result = uint32_t(i);
  }
}

} // namespace burin::detail
