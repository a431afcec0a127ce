// Ops that move elements: reshape, transpose, slice, concat, pad and others.
#include "ir/infer/Infer.h"
#include <algorithm>
#include <climits>

namespace burin::ir {

/// Checks the sizes of a shape attribute; in a loose call one may be -1, to be inferred.
static bool checkSizes(InferCall &call, const Shape &shape, bool mayLeaveOne) {
  auto isNegative = [](const Dim &d) { return d.isStatic() && d.value() < 0; };
  auto isOpen = [](const Dim &d) { return d == Dim(-1); };
  size_t open = std::count_if(shape.begin(), shape.end(), isOpen);
  size_t negative = std::count_if(shape.begin(), shape.end(), isNegative);
  if (negative == 0 || (mayLeaveOne && !call.strict && open == 1 && negative == 1))
    return true;
  return call.fail(
      text("shape ", shape, mayLeaveOne ? " has more than one -1, or another negative size" : " has a negative size"));
}

bool inferReshape(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Shape &shape = call.attr<Shape>("shape");
  if (!checkSizes(call, shape, true))
    return false;
  Dim total = elements(x.shape), known = 1;
  auto open = std::find(shape.begin(), shape.end(), Dim(-1));
  for (auto at = shape.begin(); at != shape.end(); ++at)
    if (at != open)
      known = known * *at;
  auto mismatch = [&](const Shape &wanted) {
    return call.fail(text("x ", x.shape, " has ", total, " elements, which do not fill the shape ", wanted,
                          open == shape.end() ? "" : " whatever the open size is"));
  };
  // A reshape may be valid for some values of symbols only: its creator adds a check of sizes.
  if (open == shape.end())
    return call.same(known, total) || (call.strict && mayEqual(known, total)) ? succeed(call, x.dtype, shape)
                                                                              : mismatch(shape);
  if (known == Dim(0))
    return call.fail(text("shape ", shape, " has a size 0, so the open size could be anything; write it out"));
  Dim rest = floordiv(total, known);
  if (!call.same(rest * known, total))
    return mismatch(shape);
  *open = rest;
  return succeed(call, x.dtype, shape);
}

bool inferSqueeze(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Ints &axes = call.attr<Ints>("axes");
  if (axes.empty()) {
    Ints ones;
    for (size_t i = 0; i < x.shape.size(); ++i)
      if (x.shape[i] == Dim(1))
        ones.push_back(static_cast<int64_t>(i));
    if (!requireCanonical(call, ones.empty(), "axes", str(ones)))
      return false;
    axes = std::move(ones);
  }
  if (!canonicalAxes(call, axes, x.shape.size()))
    return false;
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i)))
      shape.push_back(x.shape[i]);
    else if (!call.same(x.shape[i], 1))
      return call.fail(text("x ", x.shape, " cannot lose dimension ", i, ": its size is ", x.shape[i], ", not 1"));
  return succeed(call, x.dtype, std::move(shape));
}

bool inferUnsqueeze(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Ints &axes = call.attr<Ints>("axes");
  size_t rank = x.shape.size() + axes.size();
  if (!canonicalAxes(call, axes, rank))
    return false;
  Shape shape;
  auto next = x.shape.begin();
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i)) ? Dim(1) : *next++);
  return succeed(call, x.dtype, std::move(shape));
}

bool inferTranspose(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Ints &perm = call.attr<Ints>("perm");
  size_t rank = x.shape.size();
  if (perm.empty() && rank > 0) {
    for (size_t i = rank; i-- > 0;)
      perm.push_back(static_cast<int64_t>(i));
    if (!requireCanonical(call, false, "perm", str(perm)))
      return false;
  }
  if (perm.size() != rank)
    return call.fail(text("perm ", perm, " must name each of the ", rank, " dimensions of x ", x.shape));
  Shape shape;
  std::vector<bool> seen(rank);
  for (int64_t &p : perm) {
    if (!canonicalAxis(call, p, rank, "perm"))
      return false;
    if (seen[p])
      return call.fail(text("perm ", perm, " names dimension ", p, " twice"));
    seen[p] = true;
    shape.push_back(x.shape[p]);
  }
  return succeed(call, x.dtype, std::move(shape));
}

bool inferBroadcastTo(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Shape &shape = call.attr<Shape>("shape");
  if (!call.strict && shape.size() >= x.shape.size()) // -1 keeps a size, as in torch.expand
    for (size_t i = 0; i < x.shape.size(); ++i)
      if (Dim &size = shape[shape.size() - x.shape.size() + i]; size == Dim(-1))
        size = x.shape[i];
  if (!checkSizes(call, shape, false))
    return false;
  if (!broadcastsTo(x.shape, shape, &call))
    return call.fail(text("x ", x.shape, " does not broadcast to ", shape,
                          ": aligned at the right, each size must be equal to the new one or be 1"));
  return succeed(call, x.dtype, shape);
}

/// Python's rule for a bound of a slice: negative numbers count from the end; symbolic bounds never do.
static Dim sliceBound(const Dim &bound, const Dim &size) {
  if (bound == Dim(INT64_MAX))
    return size;
  if (!bound.isStatic())
    return min(max(bound, 0), size);
  if (bound.value() >= 0)
    return bound == Dim(0) ? bound : min(bound, size); // a size is at least 0, though that may not be provable
  return bound.value() == INT64_MIN ? Dim(0) : max(size + bound, 0);
}

bool inferSlice(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Shape &starts = call.attr<Shape>("starts"), &stops = call.attr<Shape>("stops");
  Ints &steps = call.attr<Ints>("steps");
  size_t rank = x.shape.size();
  if (!call.strict) { // bounds that are not given select everything
    if (starts.size() < rank && stops.size() == starts.size())
      stops.insert(stops.end(), x.shape.begin() + stops.size(), x.shape.end());
    starts.resize(std::max(rank, starts.size()), Dim(0));
    steps.resize(std::max(rank, steps.size()), 1);
  }
  if (starts.size() != rank || stops.size() != rank || steps.size() != rank)
    return call.fail(text("starts ", starts, ", stops ", stops, " and steps ", steps,
                          " must have one entry for each dimension of x ", x.shape));
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    if (steps[i] < 1)
      return call.fail(text("steps ", steps, " must be positive; flip the dimension first"));
    Dim start = starts[i], stop = stops[i], size = x.shape[i];
    if (call.strict) {
      if (!isAtMost(0, start, size) || !isAtMost(start, stop, size) || !isAtMost(stop, size, size))
        return call.fail(text("the bounds ", start, " … ", stop, " of dimension ", i, " of x ", x.shape,
                              " are not known to satisfy 0 <= start <= stop <= ", size));
    } else {
      starts[i] = start = sliceBound(start, size);
      stop = sliceBound(stop, size);
      stops[i] = stop = isAtMost(start, stop, size) ? stop : max(start, stop);
    }
    shape.push_back(ceildiv(stop - start, steps[i]));
  }
  return succeed(call, x.dtype, std::move(shape));
}

bool inferFlip(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  return canonicalAxes(call, call.attr<Ints>("axes"), x.shape.size()) && succeed(call, x.dtype, x.shape);
}

bool inferConcat(InferCall &call) {
  TensorSpec result = call.operand(0);
  int64_t &axis = call.attr<int64_t>("axis");
  if (!canonicalAxis(call, axis, result.shape.size()))
    return false;
  for (size_t i = 1; i < call.operands.size(); ++i) {
    Shape other = call.operand(i).shape;
    bool fits = other.size() == result.shape.size();
    if (fits) {
      result.shape[axis] = result.shape[axis] + other[axis];
      other[axis] = result.shape[axis];
      fits = call.same(result.shape, other);
    }
    if (!fits)
      return call.fail(
          text(operandText(call, 0), " and ", operandText(call, i), " must agree in all dimensions but axis ", axis));
  }
  call.results = {std::move(result)};
  return true;
}

bool inferStack(InferCall &call) {
  TensorSpec result = call.operand(0);
  int64_t &axis = call.attr<int64_t>("axis");
  if (!canonicalAxis(call, axis, result.shape.size() + 1))
    return false;
  for (size_t i = 1; i < call.operands.size(); ++i)
    if (!call.same(result.shape, call.operand(i).shape))
      return call.fail(text(operandText(call, 0), " and ", operandText(call, i), " must have one shape"));
  result.shape.insert(result.shape.begin() + axis, Dim(static_cast<int64_t>(call.operands.size())));
  call.results = {std::move(result)};
  return true;
}

bool inferSplit(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Ints &sizes = call.attr<Ints>("sizes");
  int64_t &axis = call.attr<int64_t>("axis");
  if (!canonicalAxis(call, axis, x.shape.size()))
    return false;
  Dim sum = 0;
  int64_t *open = nullptr;
  for (int64_t &size : sizes) {
    if (size < 0 && (size != -1 || open || call.strict))
      return call.fail(text("sizes ", sizes, " must not be negative"));
    if (size < 0)
      open = &size;
    else
      sum = sum + size;
  }
  const Dim &whole = x.shape[axis];
  if (open && whole.isStatic() && whole.value() >= sum.value()) {
    *open = whole.value() - sum.value();
    sum = whole;
  }
  if (sizes.empty() || !call.same(whole, sum))
    return call.fail(
        text("sizes ", sizes, " must add up to ", whole, ", the size of dimension ", axis, " of x ", x.shape));
  for (int64_t size : sizes) {
    call.results.push_back(x);
    call.results.back().shape[axis] = size;
  }
  return true;
}

bool inferTile(InferCall &call) {
  TensorSpec result = call.operand(0);
  Ints &repeats = call.attr<Ints>("repeats");
  if (!call.strict && repeats.size() < result.shape.size())
    repeats.insert(repeats.begin(), result.shape.size() - repeats.size(), 1);
  if (repeats.size() != result.shape.size())
    return call.fail(text("repeats ", repeats, " must have one number for each dimension of x ", result.shape,
                          "; unsqueeze x for more"));
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0)
      return call.fail(text("repeats ", repeats, " must not be negative"));
    result.shape[i] = result.shape[i] * repeats[i];
  }
  call.results = {std::move(result)};
  return true;
}

/// Whether the padding mode can pad `size` elements by `amount`. Symbolic sizes are checked at run time.
static bool borderExists(const std::string &mode, const Dim &size, int64_t amount) {
  if (mode == "constant" || amount <= 0 || !size.isStatic())
    return true;
  return mode == "edge" ? size.value() > 0 : size.value() > amount;
}

bool inferPad(InferCall &call) {
  TensorSpec result = call.operand(0);
  size_t rank = result.shape.size();
  if (!canonicalList(call, "low", rank, 0, INT64_MIN) || !canonicalList(call, "high", rank, 0, INT64_MIN) ||
      !canonicalList(call, "interior", rank, 0, 0))
    return false;
  const std::string &mode = call.attr<std::string>("mode");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    return call.fail(text("mode \"", mode, "\" must be \"constant\", \"edge\" or \"reflect\""));
  for (size_t i = 0; i < rank; ++i) {
    int64_t low = call.attr<Ints>("low")[i], high = call.attr<Ints>("high")[i],
            interior = call.attr<Ints>("interior")[i];
    Dim &size = result.shape[i];
    if (interior != 0 && mode != "constant")
      return call.fail(text("interior padding needs mode \"constant\", not \"", mode, "\""));
    if (!borderExists(mode, size, low) || !borderExists(mode, size, high))
      return call.fail(text("dimension ", i, " of x ", call.operand(0).shape, " is too small to be padded by ", low,
                            " and ", high, " in mode \"", mode, "\""));
    if (interior != 0) // between elements: one fewer than elements; a symbolic size is taken to be at least 1
      size = size + (size.isStatic() ? max(size - 1, 0) : size - 1) * interior;
    size = size + low + high;
    if (size.isStatic() && size.value() < 0)
      return call.fail(text("padding by ", low, " and ", high, " crops more than dimension ", i, " of x ",
                            call.operand(0).shape, " has"));
  }
  call.results = {std::move(result)};
  return true;
}

bool inferTriangle(InferCall &call) {
  return requireRank(call, 0, 2) && succeed(call, call.operand(0).dtype, call.operand(0).shape);
}

} // namespace burin::ir
