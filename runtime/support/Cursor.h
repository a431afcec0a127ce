// Serialisation of records. Reader and Writer use the `fields` functions of Artifact.h, so they cannot diverge.
// Integers are little-endian; strings and vectors start with a u32 count.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace burin::rt {

static_assert(std::endian::native == std::endian::little, "the artifact format is read in place");

template <class T> inline constexpr bool isScalar = std::is_integral_v<T> || std::is_enum_v<T>;

class Writer {
public:
  template <class... T> void operator()(T &...x) { (value(x), ...); }
  std::vector<std::byte> bytes;

private:
  void raw(const void *data, size_t size) {
    auto *p = static_cast<const std::byte *>(data);
    bytes.insert(bytes.end(), p, p + size);
  }
  template <class T> void value(T &x) {
    if constexpr (isScalar<T>)
      raw(&x, sizeof x);
    else
      fields(*this, x);
  }
  void value(std::string &x) {
    count(x.size());
    raw(x.data(), x.size());
  }
  template <class T> void value(std::vector<T> &x) {
    count(x.size());
    for (T &element : x)
      value(element);
  }
  template <class A, class B> void value(std::pair<A, B> &x) { (*this)(x.first, x.second); }
  void count(size_t n) {
    uint32_t n32 = uint32_t(n);
    raw(&n32, 4);
  }
};

/// Reads untrusted bytes: it fails at the first impossible length, and later reads leave their targets unchanged.
/// Allocations are bounded by a small multiple of the bytes read so far.
class Reader {
public:
  explicit Reader(std::span<const std::byte> data) : rest(data) {}
  template <class... T> void operator()(T &...x) { (value(x), ...); }
  bool ok() const { return good; }
  size_t remaining() const { return rest.size(); }

private:
  std::span<const std::byte> rest;
  bool good = true;

  bool take(void *out, size_t size) {
    if (!good || size > rest.size())
      return good = false;
    if (size)
      std::memcpy(out, rest.data(), size);
    rest = rest.subspan(size);
    return true;
  }
  template <class T> void value(T &x) {
    if constexpr (isScalar<T>)
      take(&x, sizeof x);
    else
      fields(*this, x);
  }
  void value(std::string &x) {
    size_t n = count(1);
    x.resize(n);
    take(x.data(), n);
  }
  template <class T> void value(std::vector<T> &x) {
    size_t n = count(isScalar<T> ? sizeof(T) : 1);
    x.clear();
    if constexpr (isScalar<T>) {
      x.resize(n);
      take(x.data(), n * sizeof(T));
    } else {
      for (size_t i = 0; i < n && good; ++i)
        value(x.emplace_back());
    }
  }
  template <class A, class B> void value(std::pair<A, B> &x) { (*this)(x.first, x.second); }
  // Reads a count of elements that take at least elementBytes each.
  size_t count(size_t elementBytes) {
    uint32_t n = 0;
    if (!take(&n, sizeof n))
      return 0;
    if (n > rest.size() / elementBytes) {
      good = false;
      return 0;
    }
    return n;
  }
};

} // namespace burin::rt
