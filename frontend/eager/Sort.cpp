#include "burin/graph/graph.h"
#include "burin/ops.h"
#include "burin/tensor/selection.h"
#include "frontend/eager/Move.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <map>
#include <mutex>

namespace burin {

namespace {

int64_t axisOf(const Tensor &x, int64_t axis, const char *op, const Location &where) {
  int64_t rank = x.rank(where);
  if (axis < -rank || axis >= rank)
    throw Error(where, op, "axis " + std::to_string(axis) + " is out of range for " + str(x.spec(where)));
  return axis < 0 ? axis + rank : axis;
}

/// The first `count` indices of an argsort along `axis`.
struct FirstIndices {
  int64_t axis;
  Dim count;
  bool descending;

  Tensor operator()(const Tensor &x, const Location &where) const {
    Tensor indices = argsort(x, axis, descending, where);
    Shape stops = x.shape(where);
    const size_t rank = stops.size();
    stops[size_t(axis)] = count;
    return slice(indices, Shape(rank, Dim(0)), stops, std::vector<int64_t>(rank, 1), where);
  }
};

/// Compiled code of FirstIndices of any sizes, by element type, rank and members.
detail::ExecutableRef compiled(const FirstIndices &first, const TensorSpec &spec, Device device,
                               const Location &where) {
  static constexpr size_t kMost = 1024; // then the table is cleared
  static auto *mutex = new std::mutex;
  static auto *known = new std::map<std::pair<std::string, int>, detail::ExecutableRef>;
  const std::string key = "topk " + std::string(name(spec.dtype)) + " " + std::to_string(spec.shape.size()) + " " +
                          std::to_string(first.axis) + " " + first.count.str() + (first.descending ? " largest" : "");
  std::lock_guard lock(*mutex);
  if (known->size() >= kMost)
    known->clear();
  detail::ExecutableRef &executable = (*known)[{key, device.is_cuda() ? device.index() : -1}];
  if (executable)
    return executable;
  auto make = [&] {
    constexpr int64_t kLongest = int64_t(1) << 40;
    TensorSpec any{spec.dtype, {}};
    for (size_t i = 0; i < spec.shape.size(); ++i)
      any.shape.push_back(int64_t(i) == first.axis ? Dim("n", first.count.value(), kLongest)
                                                   : Dim("s" + std::to_string(i)));
    return trace([&](const Tensor &x) { return first(x, where); }, {any}).shared();
  };
  std::string problem;
  executable = detail::compileCached(key, make, problem, device, where);
  if (!executable)
    throw Error(where, "topk", "internal error: the compiler refused it: " + problem);
  return executable;
}

/// FirstIndices of elements that are not traced. One kernel selects them in one pass; two eager calls would sort all
/// elements first.
Tensor selectEagerly(const FirstIndices &first, const Tensor &x, const Location &where) {
  const Tensor *operand = &x;
  detail::AlignedOperands aligned(std::span(&operand, 1), "topk", where);
  const TensorSpec spec = x.spec(where);
  TensorSpec result{DType::i64, spec.shape};
  result.shape[size_t(first.axis)] = first.count;
  constexpr auto atOnce = std::chrono::microseconds(2);
  return detail::launch(compiled(first, spec, aligned.device(), where), 0, aligned.operands(), {},
                        std::span(&result, 1), atOnce, "topk", where)[0];
}

} // namespace

SortResult sort(const Tensor &x, int64_t axis, bool descending, Location where) {
  const Location place = detail::inScope(where);
  axis = axisOf(x, axis, "sort", place);
  Tensor indices = argsort(x, axis, descending, place);
  return {gather(x, indices, axis, place), indices};
}

SortResult topk(const Tensor &x, const Dim &k, int64_t axis, bool largest, Location where) {
  const Location place = detail::inScope(where);
  axis = axisOf(x, axis, "topk", place);
  const Dim size = x.shape(place)[size_t(axis)];
  if (lowerBound(size - k).value_or(0) < 0 || lowerBound(k).value_or(0) < 0)
    throw Error(place, "topk", "k = " + k.str() + " is out of range for " + str(x.spec(place)));
  const FirstIndices first{axis, k, largest};
  constexpr int64_t kFewest = 1024; // elements along the axis from which one pass pays
  const bool isSelected = !Trace::active() && k.isStatic() && size.isStatic() && size.value() >= kFewest &&
                          k.value() > 0 && k.value() <= size.value() / 8;
  Tensor indices = isSelected ? selectEagerly(first, x, place) : first(x, place);
  return {gather(x, indices, axis, place), indices};
}

} // namespace burin
