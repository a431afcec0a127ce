#include "burin/tensor/indexing.h"
#include "burin/ops.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/PartWrite.h"
#include "ir/infer/Infer.h"

namespace burin {

namespace {

/// Applies indices, dimension by dimension.
class Indexer {
public:
  /// Indexes `x`; errors show `named`.
  Indexer(const Tensor &x, const Location &where, TensorSpec named)
      : x(x), where(where), named(std::move(named)), shape(x.shape(where)) {}

  Tensor apply(const std::vector<Index> &list) {
    read(list);
    return finish();
  }

  /// What the indices choose, if no tensor is among them and all sizes are known.
  struct Part {
    std::vector<detail::PartAxis> axes; // of x
    Shape shape;                        // of the result
  };
  std::optional<Part> part(const std::vector<Index> &list) {
    read(list);
    if (!taken.empty() || !std::ranges::all_of(shape, &Dim::isStatic))
      return std::nullopt;
    whole(int64_t(shape.size()));
    ir::InferCall call{.info = ir::opInfo(ir::OpId::slice),
                       .operands = {TensorSpec{named.dtype, shape}},
                       .attrs = {starts, stops, steps},
                       .results = {},
                       .error = {}};
    if (!ir::infer(call) || !std::ranges::all_of(call.results[0].shape, &Dim::isStatic))
      return std::nullopt;
    Part result;
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t first = std::get<Shape>(call.attrs[0])[i].value(), count = call.results[0].shape[i].value();
      const bool isFlipped = std::ranges::count(flipped, int64_t(i));
      result.axes.push_back(isFlipped ? detail::PartAxis{shape[i].value() - 1 - first, -steps[i], count}
                                      : detail::PartAxis{first, steps[i], count});
      if (!std::ranges::count(dropped, int64_t(i)))
        result.shape.push_back(count);
    }
    for (int64_t at : added)
      result.shape.insert(result.shape.begin() + at, 1);
    return result;
  }

private:
  const Tensor &x;
  const Location &where;
  const TensorSpec named;
  const Shape shape;
  int64_t axis = 0; // next dimension of x
  Shape starts, stops;
  std::vector<int64_t> steps, flipped, dropped, added; // added: positions in the result
  std::vector<std::pair<int64_t, Tensor>> taken;       // by dimension of x
  bool isSliced = false;

  void read(const std::vector<Index> &list) {
    int64_t rank = int64_t(shape.size()), count = 0, ellipses = 0;
    for (const Index &index : list) {
      ellipses += std::holds_alternative<EllipsisType>(index);
      count += !std::holds_alternative<EllipsisType>(index) && !std::holds_alternative<NoneType>(index);
    }
    if (count > rank)
      fail(std::to_string(count) + " indices for " + std::to_string(rank) + " dimensions");
    if (ellipses > 1)
      fail("more than one Ellipsis");
    for (const Index &index : list)
      if (std::holds_alternative<EllipsisType>(index))
        axis += rank - count;
      else
        std::visit([this](const auto &value) { add(value); }, static_cast<const Index::variant &>(index));
  }

  [[noreturn]] void fail(const std::string &what) { throw Error(where, "[]", what + ": cannot index " + str(named)); }

  void whole(int64_t upTo) {
    for (int64_t i = int64_t(starts.size()); i < upTo; ++i) {
      starts.push_back(0);
      stops.push_back(shape[i]);
      steps.push_back(1);
    }
  }
  void part(Dim start, Dim stop, int64_t step) {
    whole(axis);
    starts.push_back(std::move(start));
    stops.push_back(std::move(stop));
    steps.push_back(step);
    isSliced = true;
    ++axis;
  }

  void add(int64_t index) {
    const Dim &size = shape[axis];
    if (!size.isStatic()) { // checked by the run: take requires valid indices
      dropped.push_back(axis);
      taken.emplace_back(axis++, Tensor(index));
      return;
    }
    if (index < -size.value() || index >= size.value())
      fail("index " + std::to_string(index) + " is out of range for dimension " + std::to_string(axis) + " of size " +
           size.str());
    int64_t at = index < 0 ? index + size.value() : index;
    dropped.push_back(axis);
    part(at, at + 1, 1);
  }
  void add(const Slice &slice) {
    if (slice.step == 0)
      fail("a slice with step 0");
    const Dim &size = shape[axis];
    if (slice.step > 0) {
      if (slice.start || slice.stop || slice.step != 1)
        part(slice.start.value_or(0), slice.stop.value_or(size), slice.step);
      else
        ++axis;
      return;
    }
    // A negative step is a positive one in the flipped tensor, where element i is at size - 1 - i.
    flipped.push_back(axis);
    auto mirrored = [&](const std::optional<Dim> &bound, Dim fallback) {
      if (!bound)
        return fallback;
      if (!bound->isStatic())
        fail("a symbolic bound of a slice that runs backwards");
      // A bound -k from the end is k - 1 from the start of the flipped tensor; a bound before the first element is its
      // end.
      return bound->value() < 0 ? Dim(-bound->value() - 1) : max(size - 1 - *bound, 0);
    };
    part(mirrored(slice.start, 0), mirrored(slice.stop, size), -slice.step);
  }
  void add(const NoneType &) { added.push_back(axis - int64_t(dropped.size()) + extraDims() + int64_t(added.size())); }
  void add(const Tensor &index) {
    if (isFloat(index.dtype(where)) || isBool(index.dtype(where)))
      fail("an index of type " + std::string(name(index.dtype(where))) + ", but indices are integers");
    taken.emplace_back(axis++, index);
  }
  void add(const EllipsisType &) {}

  /// Number of dimensions that tensors of indices have added so far.
  int64_t extraDims() {
    int64_t extra = 0;
    for (auto &[axis, index] : taken)
      if (!std::ranges::count(dropped, axis))
        extra += index.rank(where) - 1;
    return extra;
  }

  Tensor finish() {
    Tensor result = x;
    if (!flipped.empty())
      result = flip(result, flipped, where);
    if (isSliced) {
      whole(int64_t(shape.size()));
      result = slice(result, starts, stops, steps, where);
    }
    for (size_t i = taken.size(); i-- > 0;) // backwards, so that earlier dimensions keep their positions
      result = take(result, taken[i].second, taken[i].first, where);
    std::vector<int64_t> squeezed;
    for (int64_t axis : dropped) {
      int64_t at = axis;
      bool wasTaken = false;
      for (auto &[takenAxis, index] : taken) {
        wasTaken |= takenAxis == axis;
        if (takenAxis < axis)
          at += index.rank(where) - 1;
      }
      if (!wasTaken)
        squeezed.push_back(at);
    }
    if (!squeezed.empty())
      result = squeeze(result, squeezed, where);
    if (!added.empty())
      result = unsqueeze(result, added, where);
    return result;
  }
};

} // namespace

Tensor Tensor::operator[](const Indices &indices) const {
  const Location where = detail::inScope(indices.where);
  return Indexer(*this, where, spec(where)).apply(indices.list);
}

/// The values for a part of x, of its element type; throws if they do not fit.
static Tensor valuesFor(const TensorSpec &x, const Shape &part, const Tensor &given, const Location &where) {
  const TensorSpec spec = given.spec(where);
  auto rankOf = [](DType type) { return isFloat(type) ? 2 : isInteger(type) ? 1 : 0; };
  if (rankOf(spec.dtype) > rankOf(x.dtype))
    throw Error(where, "set",
                burin::str(spec) + " does not fit into " + burin::str(x) + ": convert it with to(" +
                    std::string(name(x.dtype)) + "), or x before");
  if (!ir::broadcastsTo(spec.shape, part))
    throw Error(where, "set",
                burin::str(spec) + " does not broadcast to the chosen part of " + burin::str(x) + ", which is " +
                    burin::str(part));
  return given.to(x.dtype, where).broadcast_to(part, where);
}

Tensor &Tensor::set(const Indices &indices, const detail::Operand &value) & {
  const Location where = detail::inScope(indices.where);
  const TensorSpec mine = spec(where);
  if (detail::canWritePart(*this))
    if (auto part = Indexer(*this, where, mine).part(indices.list)) {
      const Tensor values = valuesFor(mine, part->shape, value.tensor, where);
      if (detail::canWritePart(values)) {
        detail::writePart(*this, part->axes, values, where);
        return *this;
      }
    }
  const Shape all{elements(mine.shape)};
  // The row-major position of every element of x, and of the selected ones.
  const Tensor positions = iota(all, DType::i64, 0, where).reshape(mine.shape, where);
  const Tensor chosen = Indexer(positions, where, mine).apply(indices.list);
  const Shape &part = chosen.shape(where);
  const Shape list{elements(part)};
  const Tensor values = valuesFor(mine, part, value.tensor, where).reshape(list, where);
  *this = reshape(all, where)
              .scatter(chosen.reshape(list, where), values, 0, "set", false, where)
              .reshape(mine.shape, where);
  return *this;
}

} // namespace burin
