// A restricted reader of Python's pickles: what state dicts of PyTorch are made of. It builds values and calls nothing;
// whatever would call something else in Python is refused by its name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace burin::detail {

/// What a pickle says. Values belong to their Pickle and may be shared, also by themselves.
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
    Persistent, // `items[0]`: the identity of something outside of the pickle
    Call,       // `items[0]` is a Name, `items[1]` its arguments: one of the functions that the reader knows
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
  /// Reads any bytes; throws PickleError if they are not a pickle, or one that does more than these values say.
  explicit Pickle(std::span<const std::byte> bytes);
  const PickleValue &root() const { return *result; }

private:
  friend class PickleReader;
  std::deque<PickleValue> values;
  const PickleValue *result = nullptr;
};

} // namespace burin::detail
