#include "burin/tensor/indexing.h"
#include "burin/ops.h"
#include "frontend/tensor/context/LocationScope.h"
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
    return finish();
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

Tensor &Tensor::set(const Indices &indices, const detail::Operand &value) & {
  const Location where = detail::inScope(indices.where);
  const TensorSpec mine = spec(where), given = value.tensor.spec(where);
  const Shape all{elements(mine.shape)};
  // The row-major position of every element of x, and of the selected ones.
  const Tensor positions = iota(all, DType::i64, 0, where).reshape(mine.shape, where);
  const Tensor chosen = Indexer(positions, where, mine).apply(indices.list);
  const Shape part = chosen.shape(where), list{elements(part)};
  auto rankOf = [](DType type) { return isFloat(type) ? 2 : isInteger(type) ? 1 : 0; };
  if (rankOf(given.dtype) > rankOf(mine.dtype))
    throw Error(where, "set",
                burin::str(given) + " does not fit into " + burin::str(mine) + ": convert it with to(" +
                    std::string(name(mine.dtype)) + "), or x before");
  if (!ir::broadcastsTo(given.shape, part))
    throw Error(where, "set",
                burin::str(given) + " does not broadcast to the chosen part of " + burin::str(mine) + ", which is " +
                    burin::str(part));
  const Tensor values = value.tensor.to(mine.dtype, where).broadcast_to(part, where).reshape(list, where);
  *this = reshape(all, where)
              .scatter(chosen.reshape(list, where), values, 0, "set", false, where)
              .reshape(mine.shape, where);
  return *this;
}

} // namespace burin
