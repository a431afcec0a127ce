#include "ir/reference/ops/ReferenceMove.h"
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>
#include <cstring>

namespace burin::ir {

using namespace ref;

namespace {

bool copy(MoveCall &call, size_t result, const StridedView &to, size_t operand, const StridedView &from) {
  if (to.shape != from.shape)
    return call.fail("the elements have shape " + ref::str(from.shape) + ", their place in the result is " +
                     ref::str(to.shape));
  moveElements(call.results[result].data, to, call.operands[operand].data, from, call.width);
  return true;
}
bool copyAll(MoveCall &call, const StridedView &from) { return copy(call, 0, wholeOf(call.results[0].shape), 0, from); }

bool sameOrder(MoveCall &call) {
  Sizes from{product(call.operands[0].shape)}, to{product(call.results[0].shape)};
  if (from != to)
    return call.fail(ref::str(call.operands[0].shape) + " has " + std::to_string(from[0]) + " elements, " +
                     ref::str(call.results[0].shape) + " has " + std::to_string(to[0]));
  return copy(call, 0, wholeOf(to), 0, wholeOf(from));
}

bool transpose(MoveCall &call) {
  Sizes perm = call.attr<Sizes>("perm");
  StridedView whole = wholeOf(call.operands[0].shape), view;
  size_t rank = whole.shape.size();
  if (perm.empty())
    for (size_t i = rank; i-- > 0;)
      perm.push_back(int64_t(i));
  for (int64_t p : perm) {
    size_t axis = axisOf(p, rank);
    if (axis >= rank)
      return call.fail("perm " + ref::str(perm) + " does not fit " + ref::str(whole.shape));
    view.shape.push_back(whole.shape[axis]);
    view.strides.push_back(whole.strides[axis]);
  }
  return copyAll(call, view);
}

bool broadcastTo(MoveCall &call) {
  auto view = broadcastView(call.operands[0].shape, call.results[0].shape);
  if (!view)
    return call.fail(ref::str(call.operands[0].shape) + " does not broadcast to " + ref::str(call.results[0].shape));
  return copyAll(call, *view);
}

bool slice(MoveCall &call) {
  const auto &starts = call.attr<Shape>("starts"), &stops = call.attr<Shape>("stops");
  const auto &steps = call.attr<Sizes>("steps");
  StridedView view = wholeOf(call.operands[0].shape);
  for (size_t i = 0; i < view.shape.size(); ++i) {
    int64_t size = view.shape[i], step = i < steps.size() ? steps[i] : 1;
    auto clamp = [&](const Dim &d) { return std::clamp<int64_t>(fromEnd(d.value(), size), 0, size); };
    int64_t start = clamp(starts[i]), stop = clamp(stops[i]);
    if (step <= 0)
      return call.fail("steps are positive, got " + ref::str(steps));
    view.shape[i] = start < stop ? (stop - start - 1) / step + 1 : 0;
    view.offset += start * view.strides[i];
    view.strides[i] *= step;
  }
  return copyAll(call, view);
}

bool flip(MoveCall &call) {
  StridedView view = wholeOf(call.operands[0].shape);
  std::vector<bool> flipped(view.shape.size());
  for (int64_t a : call.attr<Sizes>("axes"))
    flipped.at(axisOf(a, view.shape.size())) = true;
  for (size_t i = 0; i < view.shape.size(); ++i)
    if (flipped[i]) {
      view.offset += (view.shape[i] - 1) * view.strides[i];
      view.strides[i] = -view.strides[i];
    }
  return copyAll(call, view);
}

/// The slice of a tensor from `start` along `axis`, `size` long.
StridedView part(std::span<const int64_t> shape, size_t axis, int64_t start, int64_t size) {
  StridedView view = wholeOf(shape);
  view.offset = start * view.strides[axis];
  view.shape[axis] = size;
  return view;
}

bool concat(MoveCall &call) {
  const Sizes &shape = call.results[0].shape;
  size_t axis = axisOf(call.attr<int64_t>("axis"), shape.size());
  int64_t start = 0;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Sizes &from = call.operands[i].shape;
    if (axis >= from.size() || start + from[axis] > shape[axis])
      return call.fail("the operands do not fit " + ref::str(shape));
    if (!copy(call, 0, part(shape, axis, start, from[axis]), i, wholeOf(from)))
      return false;
    start += from[axis];
  }
  return start == shape[axis] || call.fail("the operands do not fill " + ref::str(shape));
}

bool stack(MoveCall &call) {
  const Sizes &shape = call.results[0].shape;
  size_t axis = axisOf(call.attr<int64_t>("axis"), shape.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    StridedView to = part(shape, axis, int64_t(i), 1);
    to.shape.erase(to.shape.begin() + int64_t(axis));
    to.strides.erase(to.strides.begin() + int64_t(axis));
    if (!copy(call, 0, to, i, wholeOf(call.operands[i].shape)))
      return false;
  }
  return true;
}

bool split(MoveCall &call) {
  const Sizes &shape = call.operands[0].shape;
  size_t axis = axisOf(call.attr<int64_t>("axis"), shape.size());
  int64_t start = 0;
  for (size_t i = 0; i < call.results.size(); ++i) {
    int64_t size = call.results[i].shape[axis];
    if (start + size > shape[axis])
      return call.fail("the pieces exceed " + ref::str(shape));
    if (!copy(call, i, wholeOf(call.results[i].shape), 0, part(shape, axis, start, size)))
      return false;
    start += size;
  }
  return true;
}

bool tile(MoveCall &call) {
  // Every dimension becomes two: the repetitions, with stride 0 in the operand, and the elements.
  const Sizes &repeats = call.attr<Sizes>("repeats"), &result = call.results[0].shape;
  StridedView from = wholeOf(call.operands[0].shape), to = wholeOf(result), fromView, toView;
  size_t rank = to.shape.size(), missing = rank - from.shape.size();
  for (size_t i = 0; i < rank; ++i) {
    int64_t size = i < missing ? 1 : from.shape[i - missing];
    int64_t stride = i < missing ? 0 : from.strides[i - missing];
    int64_t count = i + repeats.size() < rank ? 1 : repeats[i + repeats.size() - rank];
    if (count * size != result[i])
      return call.fail("repeats " + ref::str(repeats) + " of " + ref::str(from.shape) + " do not give " +
                       ref::str(result));
    for (StridedView *view : {&fromView, &toView})
      view->shape.insert(view->shape.end(), {count, size});
    fromView.strides.insert(fromView.strides.end(), {0, stride});
    toView.strides.insert(toView.strides.end(), {size * to.strides[i], to.strides[i]});
  }
  return copy(call, 0, toView, 0, fromView);
}

bool padConstant(MoveCall &call) {
  const Sizes &low = call.attr<Sizes>("low"), &interior = call.attr<Sizes>("interior");
  MoveTensor &result = call.results[0];
  Sizes one(result.shape.size(), 0);
  moveElements(result.data, wholeOf(result.shape), call.fill, {0, result.shape, one}, call.width);
  // Element j of dimension i goes to low + j * step, if that is inside.
  StridedView from = wholeOf(call.operands[0].shape), to = wholeOf(result.shape);
  for (size_t i = 0; i < from.shape.size(); ++i) {
    int64_t step = 1 + (i < interior.size() ? interior[i] : 0);
    if (step <= 0)
      return call.fail("interior padding is not negative, got " + ref::str(interior));
    int64_t first = low[i] >= 0 ? 0 : (-low[i] + step - 1) / step;
    int64_t end = std::min(from.shape[i], result.shape[i] > low[i] ? (result.shape[i] - low[i] - 1) / step + 1 : 0);
    from.offset += first * from.strides[i];
    to.offset += (low[i] + first * step) * to.strides[i];
    to.strides[i] *= step;
    from.shape[i] = to.shape[i] = std::max<int64_t>(end - first, 0);
  }
  return copy(call, 0, to, 0, from);
}

/// The source index of position i, which may be outside of [0, size), if the border is repeated or mirrored.
int64_t bordered(int64_t i, int64_t size, bool mirror) {
  if (!mirror || size == 1)
    return std::clamp<int64_t>(i, 0, size - 1);
  int64_t period = 2 * (size - 1);
  i = (i % period + period) % period;
  return i < size ? i : period - i;
}

bool padBorder(MoveCall &call, bool mirror) {
  const Sizes &low = call.attr<Sizes>("low");
  if (product(call.results[0].shape) == 0)
    return true;
  if (product(call.operands[0].shape) == 0)
    return call.fail("there is no border to repeat in " + ref::str(call.operands[0].shape));
  // One dimension at a time.
  Sizes shape = call.operands[0].shape;
  std::vector<char> from(call.operands[0].data, call.operands[0].data + size_t(product(shape)) * call.width);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    AxisSplit split(shape, axis);
    shape[axis] = call.results[0].shape[axis];
    std::vector<char> to(size_t(product(shape)) * call.width);
    size_t row = size_t(split.inner) * call.width;
    for (int64_t o = 0; o < split.outer; ++o)
      for (int64_t i = 0; i < shape[axis]; ++i)
        std::memcpy(to.data() + size_t(o * shape[axis] + i) * row,
                    from.data() + size_t(o * split.size + bordered(i - low[axis], split.size, mirror)) * row, row);
    from = std::move(to);
  }
  std::memcpy(call.results[0].data, from.data(), from.size());
  return true;
}

bool pad(MoveCall &call) {
  const auto &mode = call.attr<std::string>("mode");
  if (mode == "constant")
    return padConstant(call);
  if (mode == "edge" || mode == "reflect")
    return padBorder(call, mode == "reflect");
  return call.fail("unknown mode \"" + mode + "\"");
}

bool pack(MoveCall &call) {
  const Sizes &shape = call.operands[0].shape;
  int64_t width = call.attr<int64_t>("width");
  if (shape.size() < 2 || width <= 0)
    return call.fail("packing " + ref::str(shape) + " in panels of " + std::to_string(width));
  int64_t n = shape.back(), k = shape[shape.size() - 2], full = n / width, panels = full + (n % width != 0);
  int64_t batch = product(std::span(shape).first(shape.size() - 2));
  if (product(call.results[0].shape) != batch * panels * k * width)
    return call.fail("the panels of " + ref::str(shape) + " do not give " + ref::str(call.results[0].shape));
  StridedView from{0, {batch, full, k, width}, {k * n, width, n, 1}};
  StridedView to{0, {batch, full, k, width}, {panels * k * width, k * width, width, 1}};
  StridedView fromRest{full * width, {batch, k, n % width}, {k * n, n, 1}};
  StridedView toRest{full * k * width, {batch, k, n % width}, {panels * k * width, width, 1}};
  return copy(call, 0, to, 0, from) && copy(call, 0, toRest, 0, fromRest);
}

constexpr std::pair<std::string_view, MoveKernel> kMoveKernels[] = {
    {"reshape", sameOrder}, {"squeeze", sameOrder},   {"unsqueeze", sameOrder},
    {"dropout", sameOrder}, {"transpose", transpose}, {"flip", flip},
    {"concat", concat},     {"stack", stack},         {"broadcast_to", broadcastTo},
    {"slice", slice},       {"split", split},         {"tile", tile},
    {"pad", pad},           {"pack", pack},
};

/// Runs the op's move kernel on the interpreter's elements.
bool moveReference(RefCall &call) {
  MoveCall moved{call.info, call.attrs, {}, {}, 8, nullptr, {}};
  for (const RefTensor *t : call.operands)
    moved.operands.push_back({const_cast<char *>(bytesOf(*t)), t->shape});
  for (RefTensor &t : call.results)
    moved.results.push_back({bytesOf(t), t.shape});
  RefTensor fill;
  if (call.info.name == std::string_view("pad")) {
    fill = scalar(call.out().dtype, call.attr<double>("value"));
    moved.fill = bytesOf(fill);
  }
  return findMoveKernel(call.info.name)(moved) || call.fail(std::move(moved.error));
}

} // namespace

MoveKernel findMoveKernel(std::string_view op) {
  for (auto [name, kernel] : kMoveKernels)
    if (name == op)
      return kernel;
  return nullptr;
}

namespace ref {

std::string str(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

RefTensor scalar(DType dtype, double value) {
  RefTensor t = RefTensor::zeros(dtype, {});
  if (isFloat(dtype))
    t.reals()[0] = value;
  else
    t.ints()[0] = saturateTo(dtype, value);
  return t;
}

RefTensor transposed(const RefTensor &from, const Sizes &perm) {
  StridedView whole = wholeOf(from.shape), view;
  for (int64_t p : perm) {
    view.shape.push_back(whole.shape[size_t(p)]);
    view.strides.push_back(whole.strides[size_t(p)]);
  }
  RefTensor to = RefTensor::zeros(from.dtype, view.shape);
  move(to, wholeOf(to.shape), from, view);
  return to;
}

std::optional<StridedView> broadcastView(std::span<const int64_t> from, std::span<const int64_t> to) {
  StridedView whole = wholeOf(from), view{0, {to.begin(), to.end()}, Sizes(to.size(), 0)};
  if (from.size() > to.size())
    return std::nullopt;
  for (size_t i = 0, missing = to.size() - from.size(); i < from.size(); ++i)
    if (from[i] == to[missing + i])
      view.strides[missing + i] = whole.strides[i];
    else if (from[i] != 1)
      return std::nullopt;
  return view;
}

std::span<const RefKernelEntry> moveKernels() {
  static const auto entries = [] {
    std::vector<RefKernelEntry> v;
    for (auto [name, kernel] : kMoveKernels)
      v.push_back({name, moveReference});
    return v;
  }();
  return entries;
}

} // namespace ref
} // namespace burin::ir
