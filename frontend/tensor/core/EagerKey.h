// Cache key of a call, as words that compare and hash fast.
#pragma once
#include "burin/tensor.h"
#include "ir/infer/OpInfo.h"
#include "llvm/ADT/SmallVector.h"
#include <bit>

namespace burin::detail {

class Key {
  llvm::SmallVector<uint64_t, 24> words;

public:
  void add(uint64_t word) { words.push_back(word); }
  void add(std::string_view text) {
    words.push_back(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      words.push_back(word);
    }
  }
  /// Symbols are compared by text, sizes by value.
  void add(const Shape &shape) {
    words.push_back(shape.size());
    for (const Dim &size : shape)
      if (size.isStatic()) {
        words.push_back(uint64_t(size.value()));
      } else {
        words.push_back(uint64_t(INT64_MIN));
        add(std::string_view(size.str()));
      }
  }
  void add(const TensorSpec &spec, bool weak = false) {
    words.push_back(uint64_t(spec.dtype) << 1 | weak);
    add(spec.shape);
  }
  void add(const ir::Attr &attr) {
    std::visit([this](const auto &value) { addValue(value); }, attr);
  }

  /// The op of an eager call and its attributes; its operands are added next.
  void addCall(const ir::OpInfo &info, std::span<const ir::Attr> attrs) {
    add(uint64_t(&info - ir::opTable().data()));
    for (const ir::Attr &attr : attrs)
      add(attr);
  }
  void addAbsent() { add(uint64_t(-1)); }
  /// The words, for a hash that lasts longer than a process.
  std::string_view bytes() const {
    return {reinterpret_cast<const char *>(words.data()), words.size() * sizeof(uint64_t)};
  }

  friend bool operator==(const Key &a, const Key &b) { return a.words == b.words; }
  size_t hash() const {
    uint64_t h = 0x9E3779B97F4A7C15;
    for (uint64_t word : words) {
      h = (h ^ word) * 0xFF51AFD7ED558CCD;
      h ^= h >> 32;
    }
    return h;
  }

private:
  void addValue(bool value) { add(uint64_t(value)); }
  void addValue(int64_t value) { add(uint64_t(value)); }
  void addValue(double value) { add(std::bit_cast<uint64_t>(value)); }
  void addValue(DType value) { add(uint64_t(value)); }
  void addValue(const std::string &value) { add(std::string_view(value)); }
  void addValue(const Shape &value) { add(value); }
  void addValue(const std::vector<int64_t> &value) {
    add(uint64_t(value.size()));
    for (int64_t v : value)
      add(uint64_t(v));
  }
};
struct KeyHash {
  size_t operator()(const Key &key) const { return key.hash(); }
};

/// A call on a device.
struct PlacedKey {
  Key key;
  Device device;
  friend bool operator==(const PlacedKey &, const PlacedKey &) = default;
};
struct PlacedKeyHash {
  size_t operator()(const PlacedKey &at) const { return at.key.hash() ^ size_t(at.device.index()); }
};

} // namespace burin::detail
