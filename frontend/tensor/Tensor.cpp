#include "burin/tensor.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <ostream>

namespace burin {

using namespace detail;

// ---- sizes

static std::string symbolicSize(const Dim &size) {
  return "the size " + size.str() +
         " is not known while tracing, and the code after this would be right for one value of it only;\n"
         "  compute with it as a Dim, or give the input a fixed size in its TensorSpec, or a range that decides, as in "
         "Dim(\"n\", 1, 512)";
}

Size::operator int64_t() const {
  if (!isStatic())
    throw Error(where, "size", symbolicSize(*this));
  return value();
}

bool Size::isEqual(const Dim &a, const Dim &b, const Location &where) {
  auto least = lowerBound(a - b), most = upperBound(a - b);
  if ((least && *least > 0) || (most && *most < 0))
    return false;
  if (least == 0 && most == 0)
    return true;
  throw Error(where, "size", symbolicSize(a.isStatic() ? b : a));
}
bool Size::isAtMost(const Dim &a, const Dim &b, const Location &where) {
  if (burin::isAtMost(a, b))
    return true;
  if (lowerBound(a - b).value_or(0) > 0)
    return false;
  throw Error(where, "size", symbolicSize(a.isStatic() ? b : a));
}

// ---- type and shape

DType Tensor::dtype(Location where) const { return stateOf(*this, inScope(where)).spec.dtype; }
static const TensorSpec &specOf(const Tensor &x, const Location &where) {
  if (x.isTraced())
    lastSizes() = where;
  return stateOf(x, where).spec;
}
const Shape &Tensor::shape(Location where) const { return specOf(*this, inScope(where)).shape; }
TensorSpec Tensor::spec(Location where) const { return specOf(*this, inScope(where)); }
int64_t Tensor::rank(Location where) const { return int64_t(shape(where).size()); }
bool Tensor::isTraced() const { return state && std::holds_alternative<TracedValue>(state->value); }

Size Tensor::size(int64_t axis, Location where) const {
  const Shape &sizes = shape(where);
  int64_t rank = int64_t(sizes.size());
  if (axis < -rank || axis >= rank)
    throw Error(inScope(where), "size", "axis " + std::to_string(axis) + " is out of range for " + burin::str(spec()));
  return Size(sizes[axis < 0 ? axis + rank : axis], inScope(where));
}
Size Tensor::numel(Location where) const { return Size(elements(shape(where)), inScope(where)); }

static TensorState scalarState(DType dtype, ScalarValue value) { return {{dtype, {}}, true, value}; }
Tensor Tensor::scalarBool(bool value) { return Access::make(scalarState(DType::boolean, {.integer = value})); }
Tensor Tensor::scalarInt(int64_t value) { return Access::make(scalarState(DType::i64, {.integer = value})); }
Tensor Tensor::scalarFloat(double value) { return Access::make(scalarState(DType::f32, {.real = value})); }

bool operator==(const Shape &shape, const std::vector<int64_t> &sizes) {
  const Location place = placeOfTrace();
  return std::ranges::equal(shape, sizes, [&](const Dim &a, int64_t b) { return Size(a, place) == Size(b, place); });
}
std::ostream &operator<<(std::ostream &out, const Dim &size) { return out << size.str(); }
std::ostream &operator<<(std::ostream &out, const Shape &shape) { return out << burin::str(shape); }

// ---- reading

static void refuseInTrace(const TensorState &state, const char *op, const Location &where) {
  if (!std::holds_alternative<TracedValue>(state.value))
    return;
  Error error(where, op,
              "there is no value to read while tracing: the graph must serve every value of " + str(state.spec) +
                  ".\n  choose between results with where(condition, a, b), or read the value outside of the traced "
                  "function");
  noteRefused(error);
  throw error;
}

size_t Tensor::elementsToRead(const Location &where) const {
  const TensorState &state = stateOf(*this, inScope(where));
  refuseInTrace(state, "read", inScope(where));
  return size_t(elementCount(state.spec.shape));
}

const void *Tensor::elementsOf(DType dtype, const Location &where) const {
  const Location &place = inScope(where);
  const TensorState &state = stateOf(*this, place);
  refuseInTrace(state, "data", place);
  if (state.spec.dtype != dtype)
    throw Error(place, "data",
                "the tensor is " + burin::str(state.spec) + ", not " + std::string(name(dtype)) +
                    "; use to_vector, which converts, or .to(" + std::string(name(dtype)) + ")");
  return bytes(where).data();
}

std::span<const std::byte> Tensor::bytes(Location where) const {
  const Location &place = inScope(where);
  const TensorState &state = stateOf(*this, place);
  refuseInTrace(state, "bytes", place);
  if (std::holds_alternative<ScalarValue>(state.value))
    throw Error(place, "data", "a number written in the source has no memory; use item()");
  const rt::SharedBuffer &buffer = await(std::get<StorageRef>(state.value), place);
  return {static_cast<const std::byte *>(buffer.data()), byteCount(state.spec)};
}

void Tensor::read(void *to, DType as, size_t count, const Location &where) const {
  const Location &place = inScope(where);
  const TensorState &state = stateOf(*this, place);
  refuseInTrace(state, "item", place);
  if (size_t actual = elementsToRead(where); actual != count)
    throw Error(place, "item",
                "the tensor " + burin::str(state.spec) + " has " + std::to_string(actual) +
                    " elements, not one; choose one by indexing, or use to_vector");
  if (auto *scalar = std::get_if<ScalarValue>(&state.value)) {
    bool isReal = isFloat(state.spec.dtype); // a number keeps f64 precision until it is promoted with a tensor
    convertElements(scalar, isReal ? DType::f64 : DType::i64, to, as, 1);
  } else {
    convertElements(await(std::get<StorageRef>(state.value), place).data(), state.spec.dtype, to, as, count);
  }
}

const Tensor &Tensor::wait(Location where) const {
  const TensorState &state = stateOf(*this, inScope(where));
  auto *storage = std::get_if<StorageRef>(&state.value);
  if (storage && (*storage)->gpu && awaitTask(*storage, inScope(where)))
    waitOnDevice(**storage);
  else if (storage)
    await(*storage, inScope(where));
  return *this;
}

void synchronize(Location where) {
  if (rt::FailureRef failure = rt::Engine::shared().synchronize())
    rethrow(*failure, inScope(where));
  synchronizeDevices(inScope(where));
}

// ---- state

namespace detail {

int64_t elementCount(const Shape &shape) {
  int64_t count = 1;
  for (const Dim &size : shape)
    count *= size.value();
  return count;
}

rt::BufferRef allocate(size_t bytes, const Location &where) {
  rt::BufferRef buffer = rt::Memory::shared().allocate(bytes);
  if (!buffer)
    throw Error(where, "", rt::Memory::shared().exhausted(bytes).message());
  return buffer;
}

StorageRef storageOf(const TensorState &state) {
  if (auto *storage = std::get_if<StorageRef>(&state.value))
    return *storage;
  char bytes[8];
  scalarBytes(state, state.spec.dtype, bytes, {}, "");
  auto storage = std::make_shared<Storage>();
  storage->buffer = allocate(byteWidth(state.spec.dtype), {});
  std::memcpy(storage->buffer->data(), bytes, byteWidth(state.spec.dtype));
  return storage;
}

StorageRef concreteStorage(const Tensor &tensor, const char *op, const Location &where) {
  const TensorState &state = stateOf(tensor, where);
  refuseInTrace(state, op, where);
  return storageOf(state);
}

void rethrow(const rt::Failure &failure, const Location &where) {
  if (failure.exception)
    std::rethrow_exception(failure.exception);
  throw Error(where, "", failure.status.message());
}

const rt::SharedBuffer &await(const StorageRef &storage, const Location &where) {
  awaitTask(storage, where);
  return storage->gpu ? copiedToHost(*storage, where) : *storage->buffer;
}

void requireElements(const Storage &storage, const Location &where) {
  if (const rt::Failure *failure = storage.task ? storage.task->error() : nullptr; failure && !storage.isRestored)
    rethrow(*failure, where);
}

bool awaitTask(const StorageRef &storage, const Location &where) {
  if (storage->task)
    storage->task->wait();
  requireElements(*storage, where);
  return true;
}

} // namespace detail

} // namespace burin
