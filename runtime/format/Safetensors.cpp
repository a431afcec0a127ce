// Part of the runtime library, which must stay small: without a JSON library.
#include "runtime/format/Safetensors.h"
#include "runtime/support/JoinedText.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace burin::rt {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000; // limit of the format
constexpr std::string_view kMetadata = "__metadata__";

/// Sorts the tensors. `order` is as for qsort.
std::vector<const Safetensor *> sorted(const std::vector<Safetensor> &tensors,
                                       int (*order)(const void *, const void *)) {
  std::vector<const Safetensor *> all(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    all[i] = &tensors[i];
  if (!all.empty())
    std::qsort(all.data(), all.size(), sizeof all[0], order);
  return all;
}
const Safetensor &at(const void *element) { return **static_cast<const Safetensor *const *>(element); }

/// A name that occurs twice; null without one.
const std::string *repeatedName(const std::vector<Safetensor> &tensors) {
  auto byName = [](const void *a, const void *b) { return at(a).name.compare(at(b).name); };
  std::vector<const Safetensor *> all = sorted(tensors, byName);
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i]->name == all[i - 1]->name)
      return &all[i]->name;
  return nullptr;
}

/// Reads a JSON text from left to right. A function that does not find what it reads returns false; the text is then
/// malformed, or of another type.
class JsonReader {
public:
  explicit JsonReader(std::string_view text) : at(text.data()), end(text.data() + text.size()) {}

  bool take(char c) {
    skipBlanks();
    bool found = at < end && *at == c;
    at += found;
    return found;
  }
  bool isAtEnd() {
    skipBlanks();
    return at == end;
  }

  bool string(std::string &out) {
    out.clear();
    if (!take('"'))
      return false;
    while (at < end && *at != '"') {
      char c = *at++;
      if (uint8_t(c) < 0x20 || (c == '\\' && !escape(out)))
        return false;
      if (c != '\\')
        out += c;
    }
    return take('"');
  }

  /// A list of integers from 0 on.
  bool list(std::vector<uint64_t> &out) {
    const char *before = at;
    if (!take('['))
      return false;
    for (bool first = true; !take(']'); first = false) {
      uint64_t value = 0;
      if ((!first && !take(',')) || !integer(value)) {
        at = before;
        return false;
      }
      out.push_back(value);
    }
    return true;
  }

  /// Skips one value of any type.
  bool skip(int depth = 0) {
    std::string ignored;
    bool isObject = take('{');
    if (!isObject && !take('['))
      return string(ignored) || word();
    const char close = isObject ? '}' : ']';
    for (bool first = true; !take(close); first = false)
      if (depth > kDeepest || (!first && !take(',')) || (isObject && !(string(ignored) && take(':'))) ||
          !skip(depth + 1))
        return false;
    return true;
  }

private:
  static constexpr int kDeepest = 64;
  const char *at, *end;

  void skipBlanks() {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
      ++at;
  }

  bool integer(uint64_t &value) {
    skipBlanks();
    const char *first = at;
    bool fits = true;
    for (; at < end && *at >= '0' && *at <= '9'; ++at)
      fits &= !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, *at - '0', &value);
    return fits && at > first && (*first != '0' || at == first + 1);
  }

  /// A number, true, false or null.
  bool word() {
    const char *first = at;
    while (at < end && (*at == '-' || *at == '+' || *at == '.' || (*at >= '0' && *at <= '9') ||
                        (*at >= 'a' && *at <= 'z') || *at == 'E'))
      ++at;
    return at > first;
  }

  bool fourDigits(uint32_t &code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at) {
      int digit = at == end                                ? -1
                  : *at >= '0' && *at <= '9'               ? *at - '0'
                  : (*at | 32) >= 'a' && (*at | 32) <= 'f' ? (*at | 32) - 'a' + 10
                                                           : -1;
      if (digit < 0)
        return false;
      code = code * 16 + uint32_t(digit);
    }
    return true;
  }

  /// The character after a backslash, as UTF-8.
  bool escape(std::string &out) {
    if (at == end)
      return false;
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char letter = *at++;
    if (size_t known = letters.find(letter); known != letters.npos) {
      out += meanings[known];
      return true;
    }
    uint32_t code, low;
    if (letter != 'u' || !fourDigits(code) || code >> 10 == 0xdc00 >> 10)
      return false;
    if (code >> 10 == 0xd800 >> 10) { // the first of a pair
      if (end - at < 2 || *at++ != '\\' || *at++ != 'u' || !fourDigits(low) || low >> 10 != 0xdc00 >> 10)
        return false;
      code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; // bytes after the first
    out += char(more ? ~(0xff >> (more + 1)) | int(code >> 6 * more) : int(code));
    while (more-- > 0)
      out += char(0x80 | (code >> 6 * more & 0x3f));
    return true;
  }
};

class Parser {
public:
  Parser(std::span<const std::byte> file, std::string &error) : file(file), json({}), error(error) {}

  bool parse(SafetensorsFile &out) {
    uint64_t length = 0;
    if (file.size() < 8)
      return fail({"it has ", std::to_string(file.size()), " bytes, too few for a header"});
    std::memcpy(&length, file.data(), 8);
    if (length > kMaxHeader || length > file.size() - 8)
      return fail({"its header of ", std::to_string(length), " bytes does not fit the file of ",
                   std::to_string(file.size()), " bytes; the file is cut off or of another format"});
    start = 8 + length;
    json = JsonReader({reinterpret_cast<const char *>(file.data()) + 8, length});
    if (!json.take('{'))
      return malformed();
    std::string name;
    bool hasMetadata = false;
    for (bool first = true; !json.take('}'); first = false) {
      if ((!first && !json.take(',')) || !json.string(name) || !json.take(':'))
        return malformed();
      if (name == kMetadata && std::exchange(hasMetadata, true))
        return twice(name);
      if (name == kMetadata ? !addMetadata(out) : !addTensor(name, out))
        return false;
    }
    return json.isAtEnd() ? checkNamesAndRanges(out) : malformed();
  }

private:
  std::span<const std::byte> file;
  JsonReader json;
  std::string &error;
  uint64_t start = 0; // offset of the elements

  bool fail(std::initializer_list<std::string_view> what) {
    error = joined(what) + "\n  copy the file again, or save it again as safetensors";
    return false;
  }
  bool malformed() { return fail({"its header is not a JSON object"}); }
  bool twice(const std::string &name) { return fail({"the name \"", name, "\" occurs twice"}); }

  bool addMetadata(SafetensorsFile &out) {
    if (!json.take('{'))
      return json.skip() || malformed();
    std::string key, value;
    for (bool first = true; !json.take('}'); first = false) {
      if ((!first && !json.take(',')) || !json.string(key) || !json.take(':'))
        return malformed();
      if (json.string(value))
        out.metadata.emplace_back(key, value);
      else if (!json.skip())
        return malformed();
    }
    return true;
  }

  /// The members of an entry. Returns false if the JSON is malformed; `isComplete` tells whether all are valid.
  bool readEntry(std::string &type, std::vector<uint64_t> &shape, std::vector<uint64_t> &range, bool &isComplete) {
    unsigned valid = 0; // bit i: member i
    std::string key;
    if (!json.take('{'))
      return json.skip();
    for (bool first = true; !json.take('}'); first = false) {
      if ((!first && !json.take(',')) || !json.string(key) || !json.take(':'))
        return false;
      unsigned member = key == "dtype" ? 1 : key == "shape" ? 2 : key == "data_offsets" ? 4 : 0;
      bool isNew = member & ~valid;
      if (isNew && (member == 1 ? json.string(type) : json.list(member == 2 ? shape : range)))
        valid |= member;
      else if (!json.skip())
        return false;
    }
    isComplete = valid == 7 && range.size() == 2;
    return true;
  }

  bool addTensor(const std::string &name, SafetensorsFile &out) {
    std::string type;
    std::vector<uint64_t> shape, range;
    bool isComplete = false;
    if (!readEntry(type, shape, range, isComplete))
      return malformed();
    if (!isComplete)
      return fail({"the entry of \"", name, "\" lacks a valid dtype, shape or data_offsets"});
    auto *known = std::ranges::find(kDTypes, type, &DTypeInfo::safetensors);
    if (known == std::end(kDTypes))
      return fail({"\"", name, "\" is of type ", std::string_view(type).substr(0, 16), ", which burin does not have"});
    Safetensor tensor{name, known->dtype, {}, range[0], range[1]};
    uint64_t bytes = byteWidth(tensor.dtype);
    for (uint64_t n : shape) {
      if (n > INT64_MAX || __builtin_mul_overflow(bytes, n, &bytes))
        return fail({"\"", name, "\" has an impossible shape"});
      tensor.shape.push_back(int64_t(n));
    }
    if (tensor.begin > tensor.end || tensor.end > file.size() - start)
      return fail({"\"", name, "\" lies outside of the file; the file is cut off or damaged"});
    if (tensor.bytes() != bytes)
      return fail({"\"", name, "\" needs ", std::to_string(bytes), " bytes, but has ", std::to_string(tensor.bytes())});
    tensor.begin += start;
    tensor.end += start;
    out.tensors.push_back(std::move(tensor));
    return true;
  }

  bool checkNamesAndRanges(const SafetensorsFile &content) {
    if (const std::string *name = repeatedName(content.tensors))
      return twice(*name);
    auto byPlace = [](const void *a, const void *b) {
      const Safetensor &x = at(a), &y = at(b);
      return x.begin != y.begin ? (x.begin < y.begin ? -1 : 1) : int(x.end > y.end) - int(x.end < y.end);
    };
    std::vector<const Safetensor *> all = sorted(content.tensors, byPlace);
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i]->begin < all[i - 1]->end)
        return fail({"\"", all[i - 1]->name, "\" and \"", all[i]->name, "\" overlap"});
    return true;
  }
};

/// Sets the ranges, relative to the first element. Wide elements come first, so that all are aligned without padding.
void place(std::vector<Safetensor> &tensors) {
  uint64_t end = 0;
  for (unsigned width = 8; width; width /= 2)
    for (Safetensor &tensor : tensors) {
      if (byteWidth(tensor.dtype) != width)
        continue;
      uint64_t bytes = width;
      for (int64_t size : tensor.shape)
        bytes *= uint64_t(size);
      tensor.begin = end;
      tensor.end = end += bytes;
    }
}

void appendQuoted(std::string &out, std::string_view string) {
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (char c : string) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (uint8_t(c) >= 0x20)
      out += c;
    else
      ((out += "\\u00") += digits[c >> 4]) += digits[c & 15];
  }
  out += '"';
}

} // namespace

std::optional<SafetensorsFile> parseSafetensors(std::span<const std::byte> file, std::string &error) {
  SafetensorsFile content;
  return Parser(file, error).parse(content) ? std::optional(std::move(content)) : std::nullopt;
}

bool startSafetensors(SafetensorsFile &content, std::vector<std::byte> &header, std::string &error) {
  const std::string *name = repeatedName(content.tensors);
  for (const Safetensor &tensor : content.tensors)
    if (tensor.name == kMetadata)
      name = &tensor.name;
  if (name) {
    error = joined({"the name \"", *name, "\" is reserved or occurs twice"});
    return false;
  }
  place(content.tensors);
  std::string json = "{";
  auto key = [&](std::string_view name) {
    if (json.back() != '{')
      json += ',';
    appendQuoted(json, name);
    json += ':';
  };
  auto list = [&](const auto &numbers) {
    char separator = '[';
    for (auto number : numbers) {
      json += separator;
      json += std::to_string(uint64_t(number));
      separator = ',';
    }
    json += separator == '[' ? "[]" : "]";
  };
  if (!content.metadata.empty()) {
    key(kMetadata);
    json += '{';
    for (const auto &[name, value] : content.metadata) {
      key(name);
      appendQuoted(json, value);
    }
    json += '}';
  }
  for (const Safetensor &tensor : content.tensors) {
    key(tensor.name);
    json += '{';
    key("dtype");
    appendQuoted(json, infoOf(tensor.dtype).safetensors);
    key("shape");
    list(std::span(tensor.shape));
    key("data_offsets");
    const int64_t range[]{int64_t(tensor.begin), int64_t(tensor.end)};
    list(std::span<const int64_t>(range));
    json += '}';
  }
  json += '}';
  json.append((64 - (8 + json.size()) % 64) % 64, ' ');
  uint64_t length = json.size();
  header.resize(8 + length);
  std::memcpy(header.data(), &length, 8);
  std::memcpy(header.data() + 8, json.data(), length);
  for (Safetensor &tensor : content.tensors) {
    tensor.begin += header.size();
    tensor.end += header.size();
  }
  return true;
}

} // namespace burin::rt
