#include "runtime/npy/Safetensors.h"
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace burin::rt {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint64_t kMaxHeader = 100'000'000; // limit of the format
constexpr const char *kMetadata = "__metadata__";

constexpr std::pair<const char *, DType> kTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"I8", DType::i8},
    {"U8", DType::u8},   {"I16", DType::i16}, {"I32", DType::i32}, {"I64", DType::i64},   {"BOOL", DType::boolean}};

class Parser {
public:
  Parser(std::span<const std::byte> file, std::string &error) : file(file), error(error) {}

  bool parse(SafetensorsFile &out) {
    uint64_t length = 0;
    if (file.size() < 8)
      return fail("it has " + std::to_string(file.size()) + " bytes, too few for a header");
    std::memcpy(&length, file.data(), 8);
    if (length > kMaxHeader || length > file.size() - 8)
      return fail("its header of " + std::to_string(length) + " bytes does not fit the file of " +
                  std::to_string(file.size()) + " bytes; the file is cut off or of another format");
    start = 8 + length;
    Json json;
    if (!parseJson(json))
      return false;
    for (auto &[name, value] : json.items())
      if (name != kMetadata ? !addTensor(name, value, out) : !addMetadata(value, out))
        return false;
    return checkRanges(out);
  }

private:
  std::span<const std::byte> file;
  std::string &error;
  uint64_t start = 0; // offset of the elements

  bool fail(const std::string &what) {
    error = what + "\n  copy the file again, or save it again as safetensors";
    return false;
  }

  bool parseJson(Json &json) {
    std::set<std::string> seen;
    std::optional<std::string> twice;
    auto notice = [&](int depth, Json::parse_event_t event, Json &value) {
      if (depth == 1 && event == Json::parse_event_t::key && !seen.insert(value.get<std::string>()).second)
        twice = value.get<std::string>();
      return true;
    };
    auto *text = reinterpret_cast<const char *>(file.data());
    json = Json::parse(text + 8, text + start, notice, /*allow_exceptions=*/false);
    if (twice)
      return fail("the name \"" + *twice + "\" occurs twice");
    return json.is_object() || fail("its header is not a JSON object");
  }

  bool addMetadata(const Json &json, SafetensorsFile &out) {
    if (json.is_object())
      for (auto &[key, text] : json.items())
        if (text.is_string())
          out.metadata[key] = text.get<std::string>();
    return true;
  }

  bool addTensor(const std::string &name, const Json &json, SafetensorsFile &out) {
    auto has = [&](const char *key, bool (*test)(const Json &)) { return json.contains(key) && test(json[key]); };
    auto areSizes = [](const Json &list) {
      return list.is_array() &&
             std::all_of(list.begin(), list.end(), [](const Json &n) { return n.is_number_unsigned(); });
    };
    if (!json.is_object() || !has("dtype", [](const Json &text) { return text.is_string(); }) ||
        !has("shape", areSizes) || !has("data_offsets", areSizes) || json["data_offsets"].size() != 2)
      return fail("the entry of \"" + name + "\" lacks a valid dtype, shape or data_offsets");
    std::string type = json["dtype"];
    auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &t) { return type == t.first; });
    if (known == std::end(kTypes))
      return fail("\"" + name + "\" is of type " + type.substr(0, 16) + ", which burin does not have");
    Safetensor tensor{name, known->second, {}, json["data_offsets"][0], json["data_offsets"][1]};
    uint64_t bytes = byteWidth(known->second);
    for (const Json &size : json["shape"]) {
      uint64_t n = size;
      if (n > INT64_MAX || __builtin_mul_overflow(bytes, n, &bytes))
        return fail("\"" + name + "\" has an impossible shape");
      tensor.shape.push_back(int64_t(n));
    }
    if (tensor.begin > tensor.end || tensor.end > file.size() - start)
      return fail("\"" + name + "\" lies outside of the file; the file is cut off or damaged");
    if (tensor.bytes() != bytes)
      return fail("\"" + name + "\" needs " + std::to_string(bytes) + " bytes, but has " +
                  std::to_string(tensor.bytes()));
    tensor.begin += start;
    tensor.end += start;
    out.tensors.push_back(std::move(tensor));
    return true;
  }

  bool checkRanges(const SafetensorsFile &content) {
    std::vector<const Safetensor *> sorted;
    for (const Safetensor &tensor : content.tensors)
      sorted.push_back(&tensor);
    std::sort(sorted.begin(), sorted.end(),
              [](auto *a, auto *b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    for (size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i]->begin < sorted[i - 1]->end)
        return fail("\"" + sorted[i - 1]->name + "\" and \"" + sorted[i]->name + "\" overlap");
    return true;
  }
};

uint64_t byteCount(const Safetensor &tensor) {
  uint64_t bytes = byteWidth(tensor.dtype);
  for (int64_t size : tensor.shape)
    bytes *= uint64_t(size);
  return bytes;
}

/// Sets the ranges, relative to the first element. Wide elements come first, so that all are aligned without padding.
void place(std::vector<Safetensor> &tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return byteWidth(tensors[a].dtype) > byteWidth(tensors[b].dtype); });
  uint64_t end = 0;
  for (size_t i : order) {
    tensors[i].begin = end;
    end = tensors[i].end = end + byteCount(tensors[i]);
  }
}

} // namespace

std::optional<SafetensorsFile> parseSafetensors(std::span<const std::byte> file, std::string &error) {
  SafetensorsFile content;
  return Parser(file, error).parse(content) ? std::optional(std::move(content)) : std::nullopt;
}

bool startSafetensors(SafetensorsFile &content, std::vector<std::byte> &header, std::string &error) {
  place(content.tensors);
  Json json = Json::object();
  if (!content.metadata.empty())
    json[kMetadata] = content.metadata;
  for (const Safetensor &tensor : content.tensors) {
    if (tensor.name == kMetadata || json.contains(tensor.name)) {
      error = "the name \"" + tensor.name + "\" is reserved or occurs twice";
      return false;
    }
    auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto &t) { return t.second == tensor.dtype; });
    json[tensor.name] = {{"dtype", type->first}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = json.dump();
  text.append((64 - (8 + text.size()) % 64) % 64, ' ');
  uint64_t length = text.size();
  header.resize(8 + length);
  std::memcpy(header.data(), &length, 8);
  std::memcpy(header.data() + 8, text.data(), length);
  for (Safetensor &tensor : content.tensors) {
    tensor.begin += header.size();
    tensor.end += header.size();
  }
  return true;
}

} // namespace burin::rt
