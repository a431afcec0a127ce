#include "burin/tensor/indexing.h"
#include "burin/ops.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
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

  /// What the indices choose, if all sizes are known and each tensor among them is one valid number, which is read now.
  struct Part {
    std::vector<detail::PartAxis> axes; // of x
    Shape shape;                        // of the result
  };
  std::optional<Part> part(const std::vector<Index> &list) {
    readsNumbers = true;
    read(list);
    if (!selected.empty() || !lists.empty() || !std::ranges::all_of(shape, &Dim::isStatic))
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
  std::vector<std::pair<int64_t, Tensor>> selected;    // by dimension of x, which the result does not have
  /// A list of positions along a dimension of what the other indices choose.
  struct Positions {
    int64_t axis;
    Tensor index;
  };
  std::vector<Positions> lists;
  bool isSliced = false, readsNumbers = false;

  void read(const std::vector<Index> &list) {
    int64_t rank = int64_t(shape.size()), count = 0, ellipses = 0;
    for (const Index &index : list) {
      ellipses += std::holds_alternative<EllipsisType>(index);
      if (auto *mask = std::get_if<Tensor>(&index); mask && isBool(mask->dtype(where)))
        count += mask->rank(where);
      else
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
    if (!size.isStatic()) // checked by the run: take requires valid indices
      return select(Tensor(index));
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
  void add(const NoneType &) { added.push_back(place()); }
  void add(const Tensor &index) {
    if (isFloat(index.dtype(where)))
      fail("an index of type " + std::string(name(index.dtype(where))) + ", but indices are integers or bool");
    if (isBool(index.dtype(where)))
      return add(index, index.shape(where));
    if (index.rank(where) == 0)
      return select(index);
    lists.push_back({place(), index});
    ++axis;
  }
  /// A mask chooses the elements where it is true: lists of their positions along the dimensions that it covers.
  void add(const Tensor &mask, const Shape &covered) {
    if (covered.empty())
      fail("a mask without dimensions");
    const std::vector<Tensor> positions = unbind(nonzero(mask, where), 1, where);
    for (size_t i = 0; i < covered.size(); ++i) {
      const Dim &size = shape[axis];
      if (size.isStatic() && covered[i].isStatic() && size != covered[i])
        fail("a mask of shape " + burin::str(covered) + " does not fit dimension " + std::to_string(axis));
      lists.push_back({place(), positions[i]});
      ++axis;
    }
  }
  void select(const Tensor &index) {
    if (readsNumbers && shape[axis].isStatic() && detail::canWritePart(index)) {
      const int64_t number = index.to(DType::i64, where).item<int64_t>(where), size = shape[axis].value();
      if (number >= -size && number < size)
        return add(number);
    }
    dropped.push_back(axis);
    selected.emplace_back(axis++, index);
  }
  void add(const EllipsisType &) {}

  /// Where the present dimension of x is in what integers, slices and NewAxis choose.
  int64_t place() const { return axis - int64_t(dropped.size()) + int64_t(added.size()); }

  Tensor finish() {
    Tensor result = x;
    if (!flipped.empty())
      result = flip(result, flipped, where);
    if (isSliced) {
      whole(int64_t(shape.size()));
      result = slice(result, starts, stops, steps, where);
    }
    for (size_t i = selected.size(); i-- > 0;) // backwards, so that earlier dimensions keep their positions
      result = take(result, selected[i].second, selected[i].first, where);
    std::vector<int64_t> squeezed;
    for (int64_t axis : dropped) {
      auto isBefore = [&](const auto &other) { return other.first < axis; };
      auto isIt = [&](const auto &other) { return other.first == axis; };
      if (std::ranges::none_of(selected, isIt))
        squeezed.push_back(axis - std::ranges::count_if(selected, isBefore));
    }
    if (!squeezed.empty())
      result = squeeze(result, squeezed, where);
    if (!added.empty())
      result = unsqueeze(result, added, where);
    if (lists.size() == 1)
      return take(result, lists[0].index, lists[0].axis, where);
    return lists.empty() ? result : takeTogether(result);
  }

  /// Several lists of positions are broadcast and read together, as in NumPy. Their dimensions are where those that
  /// they index were if these are adjacent, otherwise the first ones.
  Tensor takeTogether(const Tensor &from) {
    const int64_t count = int64_t(lists.size()), rank = from.rank(where);
    const bool isAdjacent = lists.back().axis - lists.front().axis == count - 1;
    const int64_t first = isAdjacent ? lists.front().axis : 0;
    Tensor together = from;
    if (!isAdjacent) {
      std::vector<int64_t> order;
      for (const Positions &list : lists)
        order.push_back(list.axis);
      for (int64_t i = 0; i < rank; ++i)
        if (!std::ranges::count(order, i))
          order.push_back(i);
      together = transpose(from, order, where);
    }
    const Shape &sizes = together.shape(where);
    Tensor position; // in row-major order of the indexed dimensions
    for (int64_t i = 0; i < count; ++i) {
      const Dim &size = sizes[size_t(first + i)];
      // Reading a list of all positions makes negative ones positive, and refuses those that do not exist.
      const Tensor valid = take(iota({size}, DType::i64, 0, where), lists[size_t(i)].index, 0, where);
      position = i == 0 ? valid : burin::add(mul(position, Tensor(size), where), valid, where);
    }
    Shape merged(sizes.begin(), sizes.begin() + first);
    merged.push_back(elements(Shape(sizes.begin() + first, sizes.begin() + first + count)));
    merged.insert(merged.end(), sizes.begin() + first + count, sizes.end());
    return take(reshape(together, merged, where), position, first, where);
  }
};

} // namespace

Tensor Tensor::operator[](const Indices &indices) const {
  const Location where = detail::inScope(indices.where);
  return Indexer(*this, where, spec(where)).apply(indices.list);
}

Tensor Tensor::index(const Indices &indices) const { return (*this)[indices]; }

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

/// x with `given` where the mask, which covers the first dimensions, is true; nullopt if the values differ between
/// these places.
static std::optional<Tensor> setWhere(const Tensor &x, const Tensor &mask, const Tensor &given, const Location &where) {
  const Shape &covered = mask.shape(where), &sizes = x.shape(where);
  if (covered.size() > sizes.size() || !std::equal(covered.begin(), covered.end(), sizes.begin()))
    return std::nullopt;
  const Shape rest(sizes.begin() + std::ptrdiff_t(covered.size()), sizes.end());
  if (given.rank(where) > int64_t(rest.size()))
    return std::nullopt;
  const Tensor values = valuesFor(x.spec(where), rest, given, where);
  Shape wide = covered;
  wide.resize(sizes.size(), Dim(1));
  return burin::where(mask.reshape(wide, where), values, x, where);
}

/// x with the values at the indices replaced, or added.
static Tensor scatteredAt(const Tensor &x, const Indices &indices, const Tensor &given, const std::string &how,
                          const Location &where) {
  const TensorSpec spec = x.spec(where);
  const Shape all{elements(spec.shape)};
  // The row-major position of every element of x, and of the selected ones.
  const Tensor positions = iota(all, DType::i64, 0, where).reshape(spec.shape, where);
  const Tensor chosen = Indexer(positions, where, spec).apply(indices.list);
  const Shape &part = chosen.shape(where);
  const Shape list{elements(part)};
  const Tensor values = valuesFor(spec, part, given, where).reshape(list, where);
  return x.reshape(all, where)
      .scatter(chosen.reshape(list, where), values, 0, how, false, where)
      .reshape(spec.shape, where);
}

Tensor Tensor::index_put(const Indices &indices, const detail::Operand &value, bool accumulate) const {
  const Location where = detail::inScope(indices.where);
  if (accumulate)
    return scatteredAt(*this, indices, value.tensor, "add", where);
  Tensor result = *this;
  result.set(indices, value);
  return result;
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
  if (indices.list.size() == 1)
    if (auto *mask = std::get_if<Tensor>(&indices.list[0]); mask && isBool(mask->dtype(where)))
      if (auto whole = setWhere(*this, *mask, value.tensor, where))
        return *this = *std::move(whole);
  *this = scatteredAt(*this, indices, value.tensor, "set", where);
  return *this;
}

Tensor &Tensor::fill_(const detail::Operand &value) & {
  const Location where = detail::inScope(value.where);
  const TensorSpec mine = spec(where);
  if (value.tensor.rank(where) != 0)
    throw Error(where, "fill_", "the value must be one number, but is " + burin::str(value.tensor.spec(where)));
  return *this = valuesFor(mine, mine.shape, value.tensor, where);
}
Tensor &Tensor::zero_(Location where) & { return *this = zeros_like(*this, where); }
Tensor &Tensor::copy_(const detail::Operand &source) & {
  const Location where = detail::inScope(source.where);
  const TensorSpec mine = spec(where);
  return *this = source.tensor.to(mine.dtype, where).broadcast_to(mine.shape, where);
}
Tensor &Tensor::index_put_(const Indices &indices, const detail::Operand &value, bool accumulate) & {
  return accumulate ? *this = index_put(indices, value, true) : set(indices, value);
}

} // namespace burin
