// PyTorch's .pt and .pth files: a zip archive with the pickle of a state dict (data.pkl) and the elements of its
// tensors (data/0, data/1, …), to which the pickle refers.
#include "burin/tensor/creation.h"
#include "burin/training/data.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/data/Mapping.h"
#include "frontend/tensor/data/Pickle.h"
#include "frontend/tensor/functions/Creation.h"
#include "runtime/npy/Zip.h"
#include <algorithm>
#include <map>

namespace burin {

using namespace detail;
using Kind = PickleValue::Kind;

namespace {

constexpr std::pair<const char *, DType> kStorages[] = {
    {"torch.FloatStorage", DType::f32},     {"torch.DoubleStorage", DType::f64}, {"torch.HalfStorage", DType::f16},
    {"torch.BFloat16Storage", DType::bf16}, {"torch.CharStorage", DType::i8},    {"torch.ByteStorage", DType::u8},
    {"torch.ShortStorage", DType::i16},     {"torch.IntStorage", DType::i32},    {"torch.LongStorage", DType::i64},
    {"torch.BoolStorage", DType::boolean}};

/// Element types without a class of storages; tensors name them.
constexpr std::pair<const char *, DType> kTypes[] = {{"torch.float8_e4m3fn", DType::f8e4m3fn},
                                                     {"torch.float8_e5m2", DType::f8e5m2}};

/// Elements, which several tensors may share.
struct PthStorage {
  DType dtype;
  rt::Bytes bytes;
  std::shared_ptr<const void> owner;
};

class PthReader {
public:
  PthReader(const std::string &path, const Location &where) : path(path), where(where) {}

  StateDict read() {
    std::string problem;
    file = Mapping::open(path, problem);
    if (!file)
      fail(problem, "check the path and its permissions");
    auto directory = rt::readZip(file->bytes(), problem);
    if (!directory)
      fail(problem + "; files of PyTorch before 1.6 have none",
           "load it with a newer PyTorch and save it again: torch.save(torch.load(path), path)");
    for (rt::ZipEntry &entry : *directory)
      entries.emplace(entry.name, entry);
    for (const auto &[name, entry] : entries)
      if (name.ends_with("/data.pkl"))
        folder = name.substr(0, name.size() - 8);
    if (folder.empty())
      fail("there is no data.pkl in its archive; it is of another kind");
    if (entries.count(folder + "constants.pkl"))
      fail("it is a TorchScript program, not a state dict",
           "save the weights alone: torch.save(model.state_dict(), path)");
    checkByteOrder();
    StateDict tensors;
    try {
      Pickle pickle(unpacked(folder + "data.pkl"));
      flatten("", pickle.root(), 0, tensors);
    } catch (const PickleError &error) {
      fail(error.what(), "save the weights alone: torch.save(model.state_dict(), path)");
    }
    return tensors;
  }

private:
  const std::string &path;
  const Location &where;
  std::shared_ptr<const Mapping> file;
  std::map<std::string, rt::ZipEntry> entries;
  std::string folder;
  std::map<std::string, PthStorage> storages;

  [[noreturn]] void fail(const std::string &what, const char *advice = "copy the file again, or save it again") {
    throw Error(where, "load_pth", "cannot read \"" + path + "\": " + what + "\n  " + advice);
  }

  std::vector<std::byte> unpacked(const std::string &name) {
    std::string problem;
    auto found = entries.find(name);
    if (found == entries.end())
      fail("its archive lacks " + name);
    auto bytes = rt::unpack(file->bytes(), found->second, problem);
    if (!bytes)
      fail(problem);
    return std::move(*bytes);
  }

  void checkByteOrder() {
    if (!entries.count(folder + "byteorder"))
      return;
    std::vector<std::byte> order = unpacked(folder + "byteorder");
    if (std::string_view(reinterpret_cast<const char *>(order.data()), order.size()) != "little")
      fail("its numbers are big-endian", "save it on a little-endian machine");
  }

  // ---- from values to tensors

  static std::string keyOf(const PickleValue &key) {
    if (key.kind == Kind::Text)
      return key.text;
    if (key.kind == Kind::Int)
      return std::to_string(key.integer);
    throw PickleError("a dict in it has keys that are neither text nor integers");
  }

  /// Flattens nested dicts and lists into names with dots; skips text and None.
  void flatten(const std::string &name, const PickleValue &value, int depth, StateDict &into) {
    constexpr int kMostDepth = 64;
    constexpr size_t kMostTensors = 1'000'000;
    if (depth > kMostDepth || into.size() > kMostTensors)
      throw PickleError("its dicts and lists are nested too deeply, or without end");
    const std::string prefix = name.empty() ? "" : name + ".";
    const std::string own = name.empty() ? "tensor" : name;
    switch (value.kind) {
    case Kind::Dict:
      for (size_t i = 0; i + 1 < value.items.size(); i += 2)
        flatten(prefix + keyOf(*value.items[i]), *value.items[i + 1], depth + 1, into);
      return;
    case Kind::Tuple:
    case Kind::List:
      for (size_t i = 0; i < value.items.size(); ++i)
        flatten(prefix + std::to_string(i), *value.items[i], depth + 1, into);
      return;
    case Kind::Bool:
    case Kind::Int:
      into.emplace_back(own, copyOf(&value.integer, {DType::i64, {}}, where));
      return;
    case Kind::Float:
      into.emplace_back(own, copyOf(&value.real, {DType::f64, {}}, where));
      return;
    case Kind::Call:
      if (auto tensor = tensorOf(own, value))
        into.emplace_back(own, *tensor);
      return;
    case Kind::None:
    case Kind::Text:
    case Kind::Name:
    case Kind::Persistent:
      return;
    }
  }

  static const std::vector<const PickleValue *> &itemsOf(const PickleValue &value, size_t least) {
    if (!value.isSequence() || value.items.size() < least)
      throw PickleError("a tensor in it is described in an unknown way");
    return value.items;
  }
  static int64_t sizeOf(const PickleValue &value) {
    if (value.kind != Kind::Int || value.integer < 0)
      throw PickleError("a tensor in it has an impossible size");
    return value.integer;
  }

  std::optional<Tensor> tensorOf(const std::string &name, const PickleValue &call) {
    const std::string &function = call.items[0]->text;
    if (function == "torch._utils._rebuild_parameter") {
      const PickleValue &data = *itemsOf(*call.items[1], 1)[0];
      if (data.kind != Kind::Call || data.items[0]->text == function)
        throw PickleError("a parameter in it is described in an unknown way");
      return tensorOf(name, data);
    }
    const bool isTyped = function == "torch._utils._rebuild_tensor_v3";
    if (!isTyped && function != "torch._utils._rebuild_tensor_v2")
      return std::nullopt; // a size or a device
    const auto &parts = itemsOf(*call.items[1], isTyped ? 7 : 4);
    PthStorage storage = storageOf(*parts[0], isTyped);
    if (isTyped)
      storage.dtype = typeOf(*parts[6], kTypes);
    const int64_t offset = sizeOf(*parts[1]);
    std::vector<int64_t> sizes, strides;
    for (const PickleValue *size : itemsOf(*parts[2], 0))
      sizes.push_back(sizeOf(*size));
    for (const PickleValue *stride : itemsOf(*parts[3], 0))
      strides.push_back(sizeOf(*stride));
    if (sizes.size() != strides.size())
      throw PickleError("a tensor in it has strides of another rank");
    return elementsOf(name, storage, offset, sizes, strides);
  }

  static DType typeOf(const PickleValue &name, std::span<const std::pair<const char *, DType>> among) {
    auto type = std::ranges::find_if(among, [&](auto &known) { return name.text == known.first; });
    if (type == among.end())
      throw PickleError("it has a tensor of the type " + name.text.substr(0, 60) + ", which burin does not have");
    return type->second;
  }

  /// ("storage", type, key, device, number of elements). The elements of untyped storages are bytes.
  const PthStorage &storageOf(const PickleValue &value, bool isUntyped) {
    const auto &parts = itemsOf(value.kind == Kind::Persistent ? *value.items[0] : value, 5);
    const std::string &key = parts[2]->text;
    auto [found, isNew] = storages.try_emplace(key);
    if (!isNew)
      return found->second;
    const DType type = isUntyped ? DType::u8 : typeOf(*parts[1], kStorages);
    auto entry = entries.find(folder + "data/" + key);
    if (entry == entries.end())
      throw PickleError("its archive lacks the elements data/" + key);
    PthStorage &storage = found->second;
    storage.dtype = type;
    if (auto stored = rt::storedBytes(file->bytes(), entry->second)) {
      storage.bytes = *stored;
      storage.owner = file;
    } else {
      auto bytes = std::make_shared<std::vector<std::byte>>(unpacked(entry->first));
      storage.bytes = *bytes;
      storage.owner = bytes;
    }
    return storage;
  }

  Tensor elementsOf(const std::string &name, const PthStorage &storage, int64_t offset,
                    const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides) {
    const int64_t width = int64_t(byteWidth(storage.dtype)), held = int64_t(storage.bytes.size()) / width;
    Shape shape(sizes.begin(), sizes.end());
    if (std::ranges::count(sizes, 0))
      return copyOf(nullptr, {storage.dtype, shape}, where);
    constexpr int64_t kMostRepeated = int64_t(1) << 28; // elements of an expanded tensor, of which fewer are stored
    __int128 count = 1, last = offset, dense = 1;
    bool isDense = true;
    for (size_t i = sizes.size(); i-- > 0;) {
      isDense &= sizes[i] == 1 || strides[i] == dense;
      dense = isDense ? dense * sizes[i] : dense;
      count *= sizes[i];
      last += __int128(sizes[i] - 1) * strides[i];
      if (last > held)
        fail("\"" + name + "\" has more elements than are stored for it");
      if (count > std::max(held, kMostRepeated))
        fail("\"" + name + "\" repeats elements more than " + std::to_string(kMostRepeated) + " times",
             "save it before it is expanded");
    }
    if (last >= held)
      fail("\"" + name + "\" has more elements than are stored for it");
    const std::byte *first = storage.bytes.data() + offset * width;
    if (isDense && reinterpret_cast<uintptr_t>(first) % size_t(width) == 0 && !isBool(storage.dtype))
      return from_blob(const_cast<std::byte *>(first), {storage.dtype, shape}, [owner = storage.owner] {}, where);
    return gathered(first, {storage.dtype, shape}, sizes, strides);
  }

  /// Copies strided elements to row-major order.
  Tensor gathered(const std::byte *first, const TensorSpec &spec, const std::vector<int64_t> &sizes,
                  const std::vector<int64_t> &strides) {
    const size_t width = byteWidth(spec.dtype);
    std::vector<std::byte> elements(byteCount(spec));
    std::vector<int64_t> position(sizes.size());
    for (size_t i = 0; i * width < elements.size(); ++i) {
      int64_t from = 0;
      for (size_t d = 0; d < sizes.size(); ++d)
        from += position[d] * strides[d];
      std::copy_n(first + from * int64_t(width), width, elements.data() + i * width);
      if (isBool(spec.dtype))
        elements[i] = elements[i] == std::byte(0) ? std::byte(0) : std::byte(1);
      for (size_t d = sizes.size(); d-- > 0 && ++position[d] == sizes[d];)
        position[d] = 0;
    }
    return copyOf(elements.data(), spec, where);
  }
};

} // namespace

StateDict load_pth(const std::string &path, Location where) {
  const Location place = inScope(where);
  StateDict tensors = PthReader(path, place).read();
  for (auto &[name, tensor] : tensors)
    tensor = createdInScope(std::move(tensor), "load_pth", place);
  return tensors;
}

} // namespace burin
