#include "frontend/eager/Move.h"
#include "burin/ops.h"
#include "burin/training/gradients.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"

namespace burin {

namespace detail {

namespace {

/// A copy to another device; its gradient is copied back.
class TapeMove : public TapeNode {
public:
  TapeMove(const Tensor &x, Device from, const Location &where) : TapeNode("to", where), from(from) {
    edges.push_back(edgeOf(x));
    results.push_back(x.spec(where));
  }
  std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool) override {
    return {gradients[0].defined() ? gradients[0].to(from, place) : Tensor()};
  }

private:
  const Device from;
};

/// `brings`: x is moved because it follows the operands that it is used with.
Tensor moveTo(const Tensor &x, Device device, bool brings, const char *op, const Location &where) {
  const TensorState &state = *Access::state(x);
  const StorageRef &storage = std::get<StorageRef>(state.value);
  const size_t bytes = byteCount(state.spec);
  TensorState copy{state.spec, state.weak,
                   brings ? broughtTo(storage, bytes, device, op, where) : movedTo(storage, bytes, device, op, where)};
  copy.follows = brings && state.follows;
  Tensor result = Access::make(std::move(copy));
  const Tensor *operands[]{&x};
  return isRecorded(operands) ? withEdge(result, {std::make_shared<TapeMove>(x, deviceOf(storage), where), 0}) : result;
}

} // namespace

AlignedOperands::AlignedOperands(std::span<const Tensor *const> given, const char *op, const Location &where)
    : given(given) {
  std::optional<size_t> first;
  bool anyOnGpu = false;
  auto stateAt = [&](size_t i) -> const TensorState & { return *Access::state(*given[i]); };
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i] || !given[i]->defined())
      continue;
    const TensorState &state = stateAt(i);
    const Device device = deviceOf(state);
    anyOnGpu |= device.is_cuda();
    if (burin::detail::follows(state)) {
      follow &= state.follows || !std::holds_alternative<StorageRef>(state.value);
      if (!first && device.is_cuda())
        place = device;
      continue;
    }
    follow = false;
    if (first && device != place)
      throw Error(where, op,
                  "the operands are on different devices: " + str(stateAt(*first).spec) + " on " + place.str() +
                      ", but " + str(state.spec) + " on " + device.str() + ";\n  move one to the other, as in x.to(" +
                      inSource(place) + ")");
    place = device;
    first = i;
  }
  if (!anyOnGpu)
    return;
  for (size_t i = 0; i < given.size(); ++i) {
    pointers.push_back(given[i]);
    if (!given[i] || !given[i]->defined() || !std::holds_alternative<StorageRef>(stateAt(i).value) ||
        deviceOf(stateAt(i)) == place)
      continue;
    moved.reserve(given.size()); // `pointers` point to its elements
    pointers.back() = &moved.emplace_back(moveTo(*given[i], place, true, op, where));
  }
}

} // namespace detail

Device Tensor::device(Location where) const {
  const detail::TensorState &state = detail::stateOf(*this, detail::inScope(where));
  Trace *trace = Trace::active();
  if (std::holds_alternative<detail::TracedValue>(state.value) && trace)
    return trace->device().value_or(burin::cpu);
  return detail::deviceOf(state);
}

Tensor Tensor::to(Device device, Location where) const {
  const Location place = detail::inScope(where);
  const detail::TensorState &state = detail::stateOf(*this, place);
  if (std::holds_alternative<detail::ScalarValue>(state.value))
    return *this;
  if (std::holds_alternative<detail::TracedValue>(state.value)) {
    if (Trace *trace = Trace::active())
      trace->runOn(device, "to", place);
    return *this;
  }
  if (detail::deviceOf(state) == device)
    return detail::placed(*this);
  return detail::moveTo(*this, device, false, "to", place);
}

} // namespace burin
