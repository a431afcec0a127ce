// The safetensors format: u64 length of a JSON header, the header, the elements. The header maps names to
// {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, and "__metadata__" to strings.
#include "burin/creation.h"
#include "burin/data.h"
#include "frontend/data/Mapping.h"
#include "frontend/tensor/Creation.h"
#include "frontend/tensor/LocationScope.h"
#include "runtime/format/Archive.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace burin {

using namespace detail;
using Json = nlohmann::ordered_json;

namespace {
constexpr uint64_t kMaxHeader = 100'000'000; // the format's own limit

constexpr std::pair<const char *, DType> kTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"I8", DType::i8},
    {"U8", DType::u8},   {"I16", DType::i16}, {"I32", DType::i32}, {"I64", DType::i64},   {"BOOL", DType::boolean}};

/// Where the elements of a tensor lie, counted from the end of the header.
struct Entry {
  std::string name;
  TensorSpec spec;
  uint64_t begin, end;
};

class Reader {
public:
  Reader(const std::string &path, const Location &where) : path(path), where(where) {}

  StateDict read(std::map<std::string, std::string> *metadata) {
    std::string problem;
    file = Mapping::open(path, problem);
    if (!file)
      fail(problem, "check the path and its permissions");
    std::span<const std::byte> bytes = file->bytes();
    uint64_t length = 0;
    if (bytes.size() < 8)
      fail("it has " + std::to_string(bytes.size()) + " bytes, too few for a header");
    std::memcpy(&length, bytes.data(), 8);
    if (length > kMaxHeader || length > bytes.size() - 8)
      fail("its header of " + std::to_string(length) + " bytes does not fit the file of " +
           std::to_string(bytes.size()) + " bytes; the file is cut off or of another format");
    elements = bytes.subspan(8 + length);
    std::vector<Entry> entries = parse(bytes.subspan(8, length), metadata);
    checkRanges(entries);
    StateDict tensors;
    for (Entry &entry : entries)
      tensors.emplace_back(entry.name, tensorOf(entry));
    return tensors;
  }

private:
  const std::string &path;
  const Location &where;
  std::shared_ptr<const Mapping> file;
  std::span<const std::byte> elements;

  [[noreturn]] void fail(const std::string &what,
                         const char *advice = "copy the file again, or save it again as safetensors") {
    throw Error(where, "load_safetensors", "cannot read \"" + path + "\": " + what + "\n  " + advice);
  }

  Json parseJson(std::span<const std::byte> header) {
    std::set<std::string> seen;
    auto *begin = reinterpret_cast<const char *>(header.data());
    bool isTwice = false;
    std::string twice;
    auto notice = [&](int depth, Json::parse_event_t event, Json &value) {
      if (depth == 1 && event == Json::parse_event_t::key && !seen.insert(value.get<std::string>()).second) {
        isTwice = true;
        twice = value.get<std::string>();
      }
      return true;
    };
    Json json = Json::parse(begin, begin + header.size(), notice, /*allow_exceptions=*/false);
    if (isTwice)
      fail("the name \"" + twice + "\" occurs twice");
    if (!json.is_object())
      fail("its header is not a JSON object");
    return json;
  }

  std::vector<Entry> parse(std::span<const std::byte> header, std::map<std::string, std::string> *metadata) {
    Json json = parseJson(header);
    std::vector<Entry> entries;
    for (auto &[name, value] : json.items())
      if (name != "__metadata__")
        entries.push_back(parseEntry(name, value));
      else if (metadata && value.is_object())
        for (auto &[key, text] : value.items())
          if (text.is_string())
            (*metadata)[key] = text.get<std::string>();
    return entries;
  }

  Entry parseEntry(const std::string &name, const Json &json) {
    auto has = [&](const char *key, bool (*test)(const Json &)) { return json.contains(key) && test(json[key]); };
    auto areSizes = [](const Json &list) {
      return list.is_array() &&
             std::all_of(list.begin(), list.end(), [](const Json &n) { return n.is_number_unsigned(); });
    };
    if (!json.is_object() || !has("dtype", [](const Json &text) { return text.is_string(); }) ||
        !has("shape", areSizes) || !has("data_offsets", areSizes) || json["data_offsets"].size() != 2)
      fail("the entry of \"" + name + "\" lacks a valid dtype, shape or data_offsets");
    std::string type = json["dtype"];
    auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &t) { return type == t.first; });
    if (known == std::end(kTypes))
      fail("\"" + name + "\" is of type " + type.substr(0, 16) + ", which burin does not have");
    Entry entry{name, {known->second, {}}, json["data_offsets"][0], json["data_offsets"][1]};
    uint64_t bytes = byteWidth(known->second);
    for (const Json &size : json["shape"]) {
      uint64_t n = size;
      if (n > INT64_MAX || __builtin_mul_overflow(bytes, n, &bytes))
        fail("\"" + name + "\" has an impossible shape");
      entry.spec.shape.push_back(int64_t(n));
    }
    if (entry.begin > entry.end || entry.end > elements.size())
      fail("\"" + name + "\" lies outside of the file; the file is cut off or damaged");
    if (entry.end - entry.begin != bytes)
      fail("\"" + name + "\" " + str(entry.spec) + " needs " + std::to_string(bytes) + " bytes, but has " +
           std::to_string(entry.end - entry.begin));
    return entry;
  }

  void checkRanges(const std::vector<Entry> &entries) {
    std::vector<const Entry *> sorted;
    for (const Entry &entry : entries)
      sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(),
              [](auto *a, auto *b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    for (size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i]->begin < sorted[i - 1]->end)
        fail("\"" + sorted[i - 1]->name + "\" and \"" + sorted[i]->name + "\" overlap");
  }

  Tensor tensorOf(const Entry &entry) {
    std::span<const std::byte> bytes = elements.subspan(entry.begin, entry.end - entry.begin);
    if (isBool(entry.spec.dtype) &&
        std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte(1); }))
      fail("\"" + entry.name + "\" is bool, but has elements other than 0 and 1");
    auto address = reinterpret_cast<uintptr_t>(bytes.data());
    if (address % byteWidth(entry.spec.dtype)) // written by a library that does not align
      return copyOf(bytes.data(), entry.spec, where);
    void *data = const_cast<std::byte *>(bytes.data()); // only ever read
    return from_blob(data, entry.spec, [file = file] {}, where);
  }
};
} // namespace

StateDict load_safetensors(const std::string &path, std::map<std::string, std::string> *metadata, Location where) {
  const Location place = inScope(where);
  return Reader(path, place).read(metadata);
}

void save_safetensors(const std::string &path, const StateDict &tensors,
                      const std::map<std::string, std::string> &metadata, Location where) {
  const Location place = inScope(where);
  std::vector<StorageRef> storages;
  for (const auto &[name, tensor] : tensors)
    storages.push_back(concreteStorage(tensor, "save_safetensors", place));
  // Wide elements first, so that all are aligned although nothing may lie between them.
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return byteWidth(tensors[a].second.dtype(place)) > byteWidth(tensors[b].second.dtype(place));
  });
  std::vector<uint64_t> begins(tensors.size());
  uint64_t end = 0;
  for (size_t i : order) {
    begins[i] = end;
    end += byteCount(tensors[i].second.spec(place));
  }
  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto &[name, tensor] = tensors[i];
    if (name == "__metadata__" || header.contains(name))
      throw Error(place, "save_safetensors", "the name \"" + name + "\" is reserved or occurs twice");
    auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &t) { return t.second == tensor.dtype(); });
    Json shape = Json::array();
    for (const Dim &size : tensor.shape(place))
      shape.push_back(size.value());
    uint64_t begin = begins[i];
    header[name] = {
        {"dtype", type->first}, {"shape", shape}, {"data_offsets", {begin, begin + byteCount(tensor.spec(place))}}};
  }
  std::string text = header.dump();
  text.append((64 - (8 + text.size()) % 64) % 64, ' ');
  uint64_t length = text.size();
  std::vector<std::byte> file(8 + length + end);
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, text.data(), length);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (size_t bytes = byteCount(tensors[i].second.spec(place)))
      std::memcpy(file.data() + 8 + length + begins[i], await(storages[i], place).data(), bytes);
  if (rt::Status status = rt::writeFile(path, file); !status.ok())
    throw Error(place, "save_safetensors", status.message());
}

} // namespace burin
