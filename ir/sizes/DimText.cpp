// Printing and parsing of sizes and tensor specs.
#include "ir/sizes/DimExpression.h"
#include <charconv>
#include <functional>
#include <stdexcept>
#include <unordered_map>

namespace burin {

static std::string termText(const Dim::Expression::Monomial &monomial, uint64_t magnitude) {
  std::string text;
  for (auto &atom : monomial)
    text += (text.empty() ? "" : "*") + atom->text;
  if (monomial.empty() || magnitude != 1)
    text += (text.empty() ? "" : "*") + std::to_string(magnitude);
  return text;
}

std::string Dim::str() const {
  if (!expression)
    return std::to_string(number);
  std::string text;
  for (auto &[monomial, coefficient] : expression->terms) {
    if (text.empty())
      text = coefficient < 0 ? "-" : "";
    else
      text += coefficient < 0 ? " - " : " + ";
    text += termText(monomial, coefficient < 0 ? 0 - uint64_t(coefficient) : uint64_t(coefficient));
  }
  return text;
}

namespace {
/// Recursive descent; a malformed text throws Error, caught in Dim::parse.
class Parser {
public:
  explicit Parser(std::string_view text) : rest(text) {}

  Dim all() {
    Dim d = sum();
    if (skip() != '\0')
      bad();
    return d;
  }

private:
  static constexpr int kMaxDepth = 32;
  std::string_view rest;
  int depth = 0;

  [[noreturn]] static void bad() { throw Error("not a size"); }

  /// The next character that is not a blank, or 0 at the end.
  char skip() {
    while (!rest.empty() && rest[0] == ' ')
      rest.remove_prefix(1);
    return rest.empty() ? '\0' : rest[0];
  }
  bool eat(char c) {
    if (skip() != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!eat(c))
      bad();
  }

  Dim sum() {
    if (++depth > kMaxDepth)
      bad();
    Dim d = product();
    for (;;) {
      if (eat('+'))
        d = d + product();
      else if (eat('-'))
        d = d - product();
      else
        break;
    }
    --depth;
    return d;
  }
  Dim product() {
    bool negative = eat('-');
    Dim d = factor(negative);
    while (eat('*'))
      d = d * factor(false);
    return d;
  }
  Dim factor(bool negative) {
    char c = skip();
    if (c >= '0' && c <= '9')
      return number(negative);
    Dim d;
    if (eat('(')) {
      d = sum();
      expect(')');
    } else {
      d = nameOrCall();
    }
    return negative ? Dim(0) - d : d;
  }
  /// The rest of "seq{1..512}".
  Dim range(std::string_view name) {
    int64_t min = number(false).value(), max = INT64_MAX;
    expect('.');
    expect('.');
    if (skip() != '}')
      max = number(false).value();
    expect('}');
    return Dim(name, min, max);
  }
  Dim number(bool negative) {
    std::string digits = negative ? "-" : "";
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      digits += rest[0];
      rest.remove_prefix(1);
    }
    int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
      bad();
    return Dim(value);
  }
  Dim nameOrCall() {
    size_t length = 0;
    while (length < rest.size() && (isalnum(static_cast<unsigned char>(rest[length])) || rest[length] == '_'))
      ++length;
    std::string_view name = rest.substr(0, length);
    rest.remove_prefix(length);
    if (eat('{'))
      return range(name);
    if (!eat('('))
      return Dim(name);
    Dim a = sum();
    expect(',');
    Dim b = sum();
    expect(')');
    if (name == "floordiv")
      return floordiv(a, b);
    if (name == "ceildiv")
      return ceildiv(a, b);
    if (name == "mod")
      return mod(a, b);
    if (name == "min")
      return min(a, b);
    if (name == "max")
      return max(a, b);
    bad();
  }
};
} // namespace

static std::optional<Dim> parsed(std::string_view text) try {
  return Parser(text).all();
} catch (const Error &) { // malformed, a bad name, a division by 0, or too large
  return std::nullopt;
}

namespace {
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
} // namespace

/// Types hold sizes as text, which passes read over and over: what this thread has read is kept.
std::optional<Dim> Dim::parse(std::string_view text) {
  constexpr size_t kMostKept = 1 << 12, kLongestKept = 1 << 12;
  thread_local std::unordered_map<std::string, std::optional<Dim>, TextHash, std::equal_to<>> kept;
  if (auto known = kept.find(text); known != kept.end())
    return known->second;
  std::optional<Dim> dim = parsed(text);
  if (text.size() <= kLongestKept) {
    if (kept.size() == kMostKept)
      kept.clear();
    kept.emplace(text, dim);
  }
  return dim;
}

std::string str(const Shape &shape) {
  std::string text = "[";
  for (const Dim &d : shape)
    text += (text.size() > 1 ? ", " : "") + d.str();
  return text + "]";
}

std::string str(const TensorSpec &spec) { return std::string(name(spec.dtype)) + str(spec.shape); }

Dim elements(const Shape &shape) {
  Dim product = 1;
  for (const Dim &d : shape)
    product = product * d;
  return product;
}

} // namespace burin
