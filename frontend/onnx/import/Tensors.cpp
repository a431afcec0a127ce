#include "frontend/onnx/import/Tensors.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/onnx/import/Import.h"
#include "frontend/onnx/import/Node.h"
#include "frontend/tensor/core/TensorState.h"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace burin::onnx {

namespace {

/// A file descriptor.
class File {
public:
  explicit File(int number = -1) : number(number) {}
  File(File &&other) noexcept : number(std::exchange(other.number, -1)) {}
  File &operator=(File &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~File() {
    if (number >= 0)
      ::close(number);
  }
  int number;
};

/// Opens `location` below `folder` component by component; none may be a link or "..". On failure `problem` has the
/// reason.
File openBelow(const std::string &folder, std::string_view location, std::string &problem) {
  File place(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (place.number < 0)
    problem = std::strerror(errno);
  if (location.empty() || location[0] == '/' || location.find('\0') != location.npos)
    problem = "its location must be a relative path within the model's folder";
  while (problem.empty()) {
    size_t slash = location.find('/');
    std::string part(location.substr(0, slash));
    location = slash == location.npos ? "" : location.substr(slash + 1);
    bool isLast = location.empty();
    if (part == "..")
      problem = "its location leaves the model's folder";
    if (part.empty() || part == "..")
      continue;
    File next(::openat(place.number, part.c_str(),
                       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (isLast ? 0 : O_DIRECTORY)));
    if (next.number < 0)
      problem = errno == ELOOP ? "its location is a symbolic link, which may leave the model's folder; copy the file"
                               : std::strerror(errno);
    place = std::move(next);
    if (isLast)
      break;
  }
  struct stat info;
  if (problem.empty() && ::fstat(place.number, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink != 1)
    problem = "it is a hard link, whose other name may lie outside of the model's folder; copy the file";
  return place;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Converts the elements of the typed fields to bytes of a tensor.
template <class To, class From> void store(const std::vector<From> &from, std::vector<std::byte> &to) {
  to.resize(from.size() * sizeof(To));
  for (size_t i = 0; i < from.size(); ++i) {
    To value = To(from[i]);
    std::memcpy(to.data() + i * sizeof(To), &value, sizeof(To));
  }
}
std::vector<std::byte> typedBytes(const TensorProto &proto, DType dtype) {
  std::vector<std::byte> bytes;
  if (dtype == DType::f32)
    store<float>(proto.floats, bytes);
  else if (dtype == DType::f64)
    store<double>(proto.doubles, bytes);
  else if (isBool(dtype))
    store<bool>(proto.ints, bytes);
  else if (byteWidth(dtype) == 1)
    store<uint8_t>(proto.ints, bytes);
  else if (byteWidth(dtype) == 2)
    store<uint16_t>(proto.ints, bytes); // floats are stored as their bits
  else if (byteWidth(dtype) == 4)
    store<int32_t>(proto.ints, bytes);
  else
    store<int64_t>(proto.ints, bytes);
  return bytes;
}

/// The numbers of a narrow type from little-endian bytes; those of 4 bits lie in pairs, the first one in the low bits.
std::vector<int64_t> widened(std::span<const std::byte> bytes, const NarrowType &type, uint64_t count) {
  std::vector<int64_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    if (type.bits < 8)
      bits = uint64_t(bytes[i / 2]) >> (i % 2 * 4) & 15;
    else
      std::memcpy(&bits, bytes.data() + i * uint64_t(type.bits / 8), size_t(type.bits / 8));
    const bool isNegative = type.isSigned && bits >> (type.bits - 1);
    numbers[i] = int64_t(bits) - (isNegative ? int64_t(1) << type.bits : 0);
  }
  return numbers;
}

} // namespace

const NarrowType *narrowType(DataType type) {
  static constexpr NarrowType types[] = {{DataType(4), DType::i32, 16},
                                         {DataType(12), DType::i64, 32},
                                         {DataType(13), DType::i64, 64}, // numbers of 2^63 and above become negative
                                         {DataType(21), DType::u8, 4},
                                         {DataType(22), DType::i8, 4, true}};
  auto *known = std::ranges::find(types, type, &NarrowType::type);
  return known != std::end(types) ? known : nullptr;
}

std::optional<DType> dtypeOf(DataType type) {
  if (const NarrowType *narrow = narrowType(type))
    return narrow->dtype;
  auto *known = std::ranges::find(kDTypes, int32_t(type), &DTypeInfo::onnx);
  return known != std::end(kDTypes) ? std::optional(known->dtype) : std::nullopt;
}

DType requireType(DataType type, const std::string &what, const Location &where) {
  if (auto dtype = dtypeOf(type))
    return *dtype;
  throw Unsupported(where, "", what + " is of type " + nameOf(type) + ", which burin does not have");
}

Tensor TensorReader::read(const TensorProto &proto, const Location &where) {
  const std::string what = "the tensor " + quoted(proto.name);
  TensorSpec spec{requireType(proto.dataType, what, where), {}};
  uint64_t count = 1;
  for (int64_t size : proto.dims) {
    if (size < 0 || __builtin_mul_overflow(count, uint64_t(size), &count))
      throw Error(where, "", what + " has an impossible shape");
    spec.shape.push_back(size);
  }
  const NarrowType *narrow = narrowType(proto.dataType);
  uint64_t size;
  if (__builtin_mul_overflow(count, uint64_t(byteWidth(spec.dtype)), &size) || size > uint64_t(INT64_MAX))
    throw Error(where, "", what + " has an impossible shape");
  if (proto.isSegment)
    throw Unsupported(where, "", what + " is stored in segments");
  if (narrow)
    size = narrow->bits < 8 ? (count + 1) / 2 : count * uint64_t(narrow->bits / 8);
  auto wide = [&](std::span<const std::byte> bytes) {
    return from_vector(widened(bytes, *narrow, count), spec.shape).to(spec.dtype);
  };
  if (proto.isExternal) {
    MappingRef owner;
    std::span<const std::byte> bytes = externalBytes(proto, size, owner, where);
    return narrow ? wide(bytes) : view(bytes, spec, owner, where);
  }
  std::vector<std::byte> typed;
  std::span<const std::byte> bytes = std::as_bytes(std::span(proto.rawData.data(), proto.rawData.size()));
  if (!proto.hasRawData)
    bytes = typed = narrow && narrow->bits < 8     ? typedBytes(proto, DType::u8) // pairs
                    : narrow && narrow->bits == 16 ? typedBytes(proto, DType::i16)
                    : narrow && narrow->bits == 32 ? typedBytes(proto, DType::i32)
                                                   : typedBytes(proto, spec.dtype);
  if (bytes.size() != size)
    throw Error(where, "",
                what + " " + str(spec) + " needs " + std::to_string(size) + " bytes, but has " +
                    std::to_string(bytes.size()));
  if (narrow)
    return wide(bytes);
  return proto.hasRawData ? view(bytes, spec, file, where) : from_bytes(bytes.data(), spec, where);
}

Tensor TensorReader::view(std::span<const std::byte> bytes, const TensorSpec &spec, const MappingRef &owner,
                          const Location &where) {
  if (isBool(spec.dtype) && std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte(1); }))
    throw Error(where, "", "a bool tensor has elements other than 0 and 1");
  constexpr size_t kWorthMapping = 4096;
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (bytes.size() < kWorthMapping || address % byteWidth(spec.dtype)) {
    Tensor copy = from_bytes(bytes.data(), spec, where);
    owner->forget(bytes);
    return copy;
  }
  return from_blob(const_cast<std::byte *>(bytes.data()), spec, [owner] {}, where); // read-only
}

std::span<const std::byte> TensorReader::externalBytes(const TensorProto &proto, uint64_t size, MappingRef &owner,
                                                       const Location &where) {
  const std::string what = "the external data of " + quoted(proto.name);
  auto entry = [&](const char *key) {
    auto at = proto.external.find(key);
    return at == proto.external.end() ? std::string_view() : at->second;
  };
  std::string_view offsetText = entry("offset"), lengthText = entry("length");
  std::optional<uint64_t> offset = offsetText.empty() ? 0 : number(offsetText);
  std::optional<uint64_t> length = lengthText.empty() ? size : number(lengthText);
  if (!offset || !length || *length != size)
    throw Error(where, "",
                what + " has offset " + quoted(offsetText) + " and length " + quoted(lengthText) +
                    ", but the tensor needs " + std::to_string(size) + " bytes");
  owner = open(entry("location"), what, where);
  std::span<const std::byte> bytes = owner->bytes();
  if (*offset > bytes.size() || bytes.size() - *offset < size)
    throw Error(where, "", what + " ends beyond its file, which has " + std::to_string(bytes.size()) + " bytes");
  return bytes.subspan(*offset, size);
}

const TensorReader::MappingRef &TensorReader::open(std::string_view location, const std::string &what,
                                                   const Location &where) {
  if (auto known = external.find(location); known != external.end())
    return known->second;
  std::string problem;
  if (folder.empty())
    problem = "there is no folder that it could lie in";
  MappingRef mapping;
  bool isMissing = false;
  if (problem.empty()) {
    File opened = openBelow(folder, location, problem);
    isMissing = problem == std::strerror(ENOENT);
    if (problem.empty())
      mapping = detail::Mapping::ofFile(opened.number, problem);
  }
  if (!mapping)
    throw Error(where, "",
                what + " cannot be read from " + quoted(location) + ": " + problem +
                    (isMissing ? "\n  copy this file beside the model too" : ""));
  return external.emplace(std::string(location), std::move(mapping)).first->second;
}

// ---- values of narrow types

Tensor wrapped(const Tensor &x, const NarrowType &type) {
  if (type.bits == 64)
    return x;
  const int64_t ones = (int64_t(1) << type.bits) - 1, sign = type.isSigned ? int64_t(1) << (type.bits - 1) : 0;
  const Tensor low = bitwise_and(x, full({}, double(ones), x.dtype()));
  return type.isSigned ? bitwise_xor(low, full({}, double(sign), x.dtype())) - full({}, double(sign), x.dtype()) : low;
}

void keepNarrow(const Node &n, Values &results) {
  const NarrowType *type = nullptr;
  if (n.op() == "Constant" || n.op() == "ConstantOfShape")
    type = n.hasAttribute("value") ? n.narrowOfTensor("value") : nullptr;
  else if (n.op() == "Cast")
    type = n.narrow("to");
  else if (n.op() == "QuantizeLinear")
    type = n.has(2) ? n.narrow(2) : n.narrow("output_dtype");
  else if (n.op() == "CastLike")
    type = n.narrow(1);
  else
    for (size_t i = 0; i < n.inputCount() && !type; ++i)
      type = n.narrow(i);
  if (!type)
    return;
  constexpr std::string_view wrapping[] = {"Add", "BitShift", "BitwiseNot", "CumSum",     "MatMul", "Mul",
                                           "Neg", "Pow",      "ReduceSum",  "ReduceProd", "Sub",    "Sum"};
  const bool wraps = std::find(std::begin(wrapping), std::end(wrapping), n.op()) != std::end(wrapping);
  for (Value &result : results) {
    if (result.sequence || !result.defined() ||
        (result.contents ? result.contents->dtype : result.tensor.dtype()) != type->dtype)
      continue;
    if (wraps && !result.contents)
      result.tensor = wrapped(result.tensor, *type);
    result.narrow = type->type;
  }
}

} // namespace burin::onnx
