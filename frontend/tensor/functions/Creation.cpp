#include "frontend/tensor/functions/Creation.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include <array>
#include <cmath>

namespace burin {

using namespace detail;

namespace detail {

void requireSizes(const Shape &shape, const char *op, const Location &where) {
  for (const Dim &size : shape)
    if (!size.isStatic() || size.value() < 0)
      throw Error(where, op, "the shape " + str(shape) + " must consist of numbers that are not negative");
  try {
    (elements(shape) * 8).value();
  } catch (const std::exception &) {
    throw Error(where, op, "the shape " + str(shape) + " has too many elements");
  }
}

Tensor fillLater(TensorSpec spec, Fill fill, const Location &where) {
  constexpr int64_t kGrain = 1 << 14;
  auto storage = std::make_shared<Storage>();
  size_t bytes = byteCount(spec);
  auto work = [storage, bytes, where, fill = std::move(fill), count = elementCount(spec.shape)] {
    storage->buffer = allocate(bytes, where);
    void *data = storage->buffer->data();
    rt::Pool::shared().parallelFor(count, kGrain, [&](int64_t lo, int64_t hi, int) { fill(data, lo, hi); });
  };
  rt::TaskRef task = rt::Engine::shared().enqueue({}, bytes, std::move(work));
  storage->task = std::move(task);
  return Access::make(std::move(spec), std::move(storage));
}

Tensor copyOf(const void *data, TensorSpec spec, const Location &where) {
  auto storage = std::make_shared<Storage>();
  size_t bytes = byteCount(spec);
  storage->buffer = allocate(bytes, where);
  if (bytes)
    std::memcpy(storage->buffer->data(), data, bytes);
  return Access::make(std::move(spec), std::move(storage));
}

bool isMadeOnHost(const ir::OpInfo &info) {
  static const ir::OpInfo *ops[] = {ir::findOp("full"), ir::findOp("iota")};
  return llvm::is_contained(ops, &info);
}

/// Created on the device of the thread's DeviceScope; without one, it follows its uses.
static Tensor made(const TensorSpec &spec, Fill fill, const Location &where) {
  Tensor result = fillLater(spec, std::move(fill), where);
  return scopedDevice() ? createdInScope(std::move(result), "", where) : following(result);
}

Tensor createOnHost(const ir::OpInfo &info, std::vector<ir::Attr> attrs, const Location &where) {
  CheckedCall call = checkCall(info, {}, {}, std::move(attrs), where);
  const TensorSpec &spec = call.results[0];
  requireSizes(spec.shape, info.name, where);
  size_t width = byteWidth(spec.dtype);
  if (&info == ir::findOp("full")) {
    char element[8] = {};
    double value = std::get<double>(call.attrs[1]);
    convertElements(&value, DType::f64, element, spec.dtype, 1);
    if (std::optional<Device> device = scopedDevice(); device && device->is_cuda())
      return Access::make(spec, filledOn(*device, element, width, size_t(elementCount(spec.shape)), info.name, where));
    const auto bytes = std::bit_cast<std::array<char, 8>>(element);
    Tensor result = made(
        spec,
        [bytes, width](void *data, int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i)
            std::memcpy(static_cast<char *>(data) + i * width, bytes.data(), width);
        },
        where);
    Storage &storage = *std::get<StorageRef>(Access::state(result)->value);
    storage.element = bytes;
    storage.elementWidth = uint8_t(width);
    return result;
  }
  int64_t axis = std::get<int64_t>(call.attrs[2]), size = spec.shape[axis].value(), inner = 1;
  for (size_t i = axis + 1; i < spec.shape.size(); ++i)
    inner *= spec.shape[i].value();
  return made(
      spec,
      [=, dtype = spec.dtype](void *data, int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) {
          int64_t value = i / inner % size;
          convertElements(&value, DType::i64, static_cast<char *>(data) + i * width, dtype, 1);
        }
      },
      where);
}

/// Appends the numbers of `list` in order; sets or checks the sizes of the dimensions from `depth` on.
static void collect(const NestedNumbers &list, size_t depth, std::vector<int64_t> &sizes, bool &isFixed,
                    std::vector<const NestedNumbers *> &numbers, const Location &where) {
  if (!list.isList()) {
    if (isFixed && depth != sizes.size())
      throw Error(where, "tensor", "the lists are not nested equally deep");
    isFixed = true;
    numbers.push_back(&list);
    return;
  }
  int64_t size = int64_t(list.list().size());
  if (depth == sizes.size() && !isFixed)
    sizes.push_back(size);
  else if (depth >= sizes.size() || sizes[depth] != size)
    throw Error(where, "tensor",
                "the lists at depth " + std::to_string(depth + 1) +
                    " differ in length: " + (depth < sizes.size() ? std::to_string(sizes[depth]) : "a number") +
                    " and " + std::to_string(size));
  if (size == 0)
    isFixed = true;
  for (const NestedNumbers &part : list.list())
    collect(part, depth + 1, sizes, isFixed, numbers, where);
}

static DType commonType(const std::vector<const NestedNumbers *> &numbers) {
  bool areBools = !numbers.empty();
  for (const NestedNumbers *number : numbers) {
    if (isFloat(number->dtype()))
      return DType::f32;
    areBools &= isBool(number->dtype());
  }
  return numbers.empty() ? DType::f32 : areBools ? DType::boolean : DType::i64;
}

} // namespace detail

Tensor tensor(const NestedNumbers &values, std::optional<DType> dtype, Location where) {
  const Location &place = inScope(where);
  std::vector<int64_t> sizes;
  std::vector<const NestedNumbers *> numbers;
  bool isFixed = false;
  collect(values, 0, sizes, isFixed, numbers, place);
  TensorSpec spec{dtype.value_or(commonType(numbers)), Shape(sizes.begin(), sizes.end())};
  size_t width = byteWidth(spec.dtype);
  std::vector<char> bytes(numbers.size() * width);
  for (size_t i = 0; i < numbers.size(); ++i) {
    double real = numbers[i]->real();
    int64_t integer = numbers[i]->integer();
    bool isReal = isFloat(numbers[i]->dtype());
    convertElements(isReal ? static_cast<const void *>(&real) : &integer, isReal ? DType::f64 : DType::i64,
                    bytes.data() + i * width, spec.dtype, 1);
  }
  return createdInScope(copyOf(bytes.data(), std::move(spec), place), "tensor", place);
}

Tensor from_bytes(const void *data, const TensorSpec &spec, Location where) {
  requireSizes(spec.shape, "from_bytes", inScope(where));
  return createdInScope(copyOf(data, spec, inScope(where)), "from_bytes", inScope(where));
}

Tensor from_blob(void *data, const TensorSpec &spec, std::function<void()> release, Location where) {
  const Location &place = inScope(where);
  requireSizes(spec.shape, "from_blob", place);
  auto storage = std::make_shared<Storage>();
  auto *call = release ? new std::function<void()>(std::move(release)) : nullptr;
  auto free = [](void *ctx) {
    auto *call = static_cast<std::function<void()> *>(ctx);
    (*call)();
    delete call;
  };
  storage->buffer = rt::Memory::wrap(data, byteCount(spec), call ? +free : nullptr, call);
  if (!storage->buffer)
    throw Error(place, "from_blob", "out of memory");
  return Access::make(spec, std::move(storage));
}

Tensor empty(const Shape &shape, DType dtype, Location where) {
  const Location &place = inScope(where);
  requireSizes(shape, "empty", place);
  auto storage = std::make_shared<Storage>();
  TensorSpec spec{dtype, shape};
  storage->buffer = allocate(byteCount(spec), place);
  return createdInScope(Access::make(std::move(spec), std::move(storage)), "empty", place);
}

Tensor detail::sizeTensor(const Dim &size) {
  if (size.isStatic())
    return from_bytes(std::array{size.value()}.data(), {DType::i64, {}});
  // The last of 0, 1, … size.
  return take(iota({size + 1}, DType::i64), from_vector<int64_t>({-1}, Shape{}), 0);
}

Tensor zeros(const Shape &shape, DType dtype, Location where) { return full(shape, 0, dtype, where); }
Tensor ones(const Shape &shape, DType dtype, Location where) { return full(shape, 1, dtype, where); }
Tensor detail::fullOf(const Shape &shape, double value, DType dtype, const Location &where) {
  return full(shape, value, dtype, where);
}
Tensor detail::fullOf(const Shape &shape, int64_t value, const Location &where) {
  constexpr int64_t kExact = int64_t(1) << 53; // of integers in a double
  if (-kExact <= value && value <= kExact)
    return full(shape, double(value), DType::i64, where);
  return broadcast_to(from_vector<int64_t>({value}, Shape{}, where), shape, where);
}
Tensor full(const Shape &shape, const Tensor &value, Location where) {
  if (value.rank(where) != 0)
    throw Error(inScope(where), "full", "the value must be one number, but is " + str(value.spec(where)));
  return broadcast_to(value.to(value.dtype(where), where), shape, where);
}
Tensor zeros(const Shape &shape, DType dtype, Device device, Location where) {
  return full(shape, 0, dtype, device, where);
}
Tensor ones(const Shape &shape, DType dtype, Device device, Location where) {
  return full(shape, 1, dtype, device, where);
}
Tensor full(const Shape &shape, double value, DType dtype, Device device, Location where) {
  DeviceScope scope(device);
  return full(shape, value, dtype, where);
}
Tensor empty(const Shape &shape, DType dtype, Device device, Location where) {
  DeviceScope scope(device);
  return empty(shape, dtype, where);
}
Tensor full_like(const Tensor &x, double value, Location where) {
  const TensorState &state = stateOf(x, inScope(where));
  Beside scope(x, where);
  return full(state.spec.shape, value, state.spec.dtype, where);
}
Tensor full_like(const Tensor &x, double value, DType dtype, Location where) {
  Beside scope(x, where);
  return full(x.shape(where), value, dtype, where);
}
Tensor zeros_like(const Tensor &x, DType dtype, Location where) { return full_like(x, 0, dtype, where); }
Tensor ones_like(const Tensor &x, DType dtype, Location where) { return full_like(x, 1, dtype, where); }
Tensor zeros_like(const Tensor &x, Location where) { return full_like(x, 0, where); }
Tensor ones_like(const Tensor &x, Location where) { return full_like(x, 1, where); }

// ---- sequences: composed of the same ops in traces and eager code, so that they agree

Tensor detail::arangeIntegers(int64_t start, int64_t stop, int64_t step, DType dtype, const Location &where) {
  if (step == 0)
    throw Error(inScope(where), "arange", "the step must not be 0");
  __int128 span = __int128(stop) - start;
  int64_t count = int64_t(std::max<__int128>(0, step > 0 ? (span + step - 1) / step : (span + step + 1) / step));
  Tensor values = iota({count}, DType::i64, 0, where);
  if (step != 1)
    values = mul(values, step, where);
  if (start != 0)
    values = add(values, start, where);
  return values.to(dtype, where);
}

Tensor detail::arangeReals(double start, double stop, double step, DType dtype, const Location &where) {
  double count = std::ceil((stop - start) / step);
  if (!std::isfinite(count) || count > 1e18)
    throw Error(inScope(where), "arange", "start, stop and step must be finite and step not 0");
  Tensor values = iota({int64_t(std::max(0.0, count))}, DType::f64, 0, where);
  return add(mul(values, step, where), start, where).to(dtype, where);
}

Tensor arange(const Dim &start, const Dim &stop, int64_t step, std::optional<DType> dtype, Location where) {
  if (step == 0)
    throw Error(inScope(where), "arange", "the step must not be 0");
  const Dim span = step > 0 ? stop - start : start - stop, count = max(ceildiv(span, std::abs(step)), 0);
  Tensor values = iota({count}, DType::i64, 0, where);
  if (step != 1)
    values = mul(values, step, where);
  if (start != Dim(0))
    values = add(values, Tensor(start, where), where);
  return values.to(dtype.value_or(DType::i64), where);
}
Tensor arange(const Dim &stop, std::optional<DType> dtype, Location where) {
  return arange(Dim(0), stop, 1, dtype, where);
}

/// `count` numbers with this distance: the first half counted from start, the others from stop, which is then exact.
static Tensor spaced(const Tensor &start, const Tensor &stop, const Tensor &step, const Dim &count, DType dtype,
                     const Location &where) {
  Tensor i = iota({count}, DType::f64, 0, where), last = sub(Tensor(count, where).to(DType::f64, where), 1.0, where);
  Tensor fromStart = add(mul(i, step, where), start, where);
  Tensor fromStop = sub(stop, mul(sub(last, i, where), step, where), where);
  Tensor isFirstHalf = le(mul(i, 2, where), last, where);
  return burin::where(isFirstHalf, fromStart, fromStop, where).to(dtype, where);
}

Tensor linspace(double start, double stop, const Dim &count, DType dtype, Location where) {
  if (!count.isStatic())
    return linspace(Tensor(start), Tensor(stop), count, dtype, where);
  if (count.value() < 0)
    throw Error(inScope(where), "linspace", "the count " + count.str() + " must not be negative");
  const double step = count.value() > 1 ? (stop - start) / double(count.value() - 1) : 0;
  return spaced(start, stop, step, count, dtype, where);
}
Tensor linspace(const Tensor &start, const Tensor &stop, const Dim &count, DType dtype, Location where) {
  LocationScope scope(inScope(where));
  if (count.isStatic() && count.value() < 0)
    throw Error(inScope(where), "linspace", "the count " + count.str() + " must not be negative");
  if (start.rank() != 0 || stop.rank() != 0)
    throw Error(inScope(where), "linspace",
                "start and stop must be one number each, but are " + str(start.spec()) + " and " + str(stop.spec()));
  const Tensor from = start.to(DType::f64), to = stop.to(DType::f64);
  const Tensor gaps = maximum(Tensor(count) - 1, 1).to(DType::f64);
  return spaced(from, to, (to - from) / gaps, count, dtype, inScope(where));
}

Tensor eye(const Dim &rows, const Dim &columns, DType dtype, Location where) {
  Shape shape{rows, columns == Dim(-1) ? rows : columns};
  return eq(iota(shape, DType::i64, 0, where), iota(shape, DType::i64, 1, where), where).to(dtype, where);
}

} // namespace burin
