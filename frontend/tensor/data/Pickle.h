// A restricted reader of Python's pickles, for PyTorch's state dicts. It builds values and calls nothing; a pickle that
// would call anything else in Python is rejected, with the name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace burin::detail {

/// A value in a pickle. Values belong to their Pickle and may be shared, also cyclically.
struct PickleValue {
  enum class Kind {
    None,
    Bool,
    Int,
    Float,
    Text,
    Tuple,
    List,
    Dict,       // `items`: key, value, key, value, …
    Name,       // `text`: a class or function, "torch.FloatStorage"
    Persistent, // `items[0]`: identity of an object outside of the pickle
    Call,       // `items[0]` is a Name, `items[1]` its arguments: one of the known functions
  } kind = Kind::None;
  int64_t integer = 0; // also of Bool
  double real = 0;
  std::string text;
  std::vector<const PickleValue *> items;

  bool isSequence() const { return kind == Kind::Tuple || kind == Kind::List; }
};

class PickleError : public std::runtime_error {
public:
  using runtime_error::runtime_error;
};

class Pickle {
public:
  /// Reads any bytes; throws PickleError if they are not a pickle, or contain more than these kinds of values.
  explicit Pickle(std::span<const std::byte> bytes);
  const PickleValue &root() const { return *result; }

private:
  friend class PickleReader;
  std::deque<PickleValue> values;
  const PickleValue *result = nullptr;
};

} // namespace burin::detail
