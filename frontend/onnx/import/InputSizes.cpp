#include "frontend/onnx/import/InputSizes.h"
#include <algorithm>
#include <cctype>

namespace burin::onnx {

namespace {

std::string identifierOf(std::string_view name) {
  std::string out(name.substr(0, 64));
  for (char &c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])))
    out = "n" + out;
  for (const char *reserved : {"min", "max", "mod", "floordiv", "ceildiv"})
    if (out == reserved)
      out += "_";
  return out;
}

/// Texts that exporters write for unknown sizes: "?", "unk__12" (tf2onnx), "None" (keras2onnx), "-1".
bool saysNothing(std::string_view parameter) {
  bool hasLetter = std::any_of(parameter.begin(), parameter.end(),
                               [](char c) { return std::isalpha(static_cast<unsigned char>(c)); });
  return !hasLetter || parameter.starts_with("unk__") || parameter == "None";
}

bool isNumber(const DimProto &dim) { return dim.value > 0; }

} // namespace

InputSizes::InputSizes(const std::vector<const ValueInfo *> &inputs, const std::vector<OnnxOptions::Size> &given,
                       const Location &where)
    : place(where) {
  auto forEach = [&](auto &&visit) {
    for (const ValueInfo *input : inputs)
      for (size_t axis = 0; axis < input->shape.size(); ++axis)
        if (!isNumber(input->shape[axis]))
          visit(*input, axis);
  };
  // A dim_param such as "past + length" is an expression of other sizes, if these are names of sizes.
  std::set<std::string_view> names;
  forEach([&](const ValueInfo &input, size_t axis) {
    if (std::string_view name = input.shape[axis].param; identifierOf(name) == name && !saysNothing(name))
      names.insert(name);
  });
  auto isExpression = [&](std::string_view parameter) {
    std::optional<Dim> parsed = names.contains(parameter) ? std::nullopt : Dim::parse(parameter);
    std::vector<Dim::Symbol> used = parsed ? parsed->symbols() : std::vector<Dim::Symbol>();
    auto isName = [&](const Dim::Symbol &symbol) { return names.contains(symbol.name); };
    return !used.empty() && std::all_of(used.begin(), used.end(), isName);
  };
  std::set<std::string> taken(names.begin(), names.end());
  forEach([&](const ValueInfo &input, size_t axis) {
    if (!isExpression(input.shape[axis].param))
      add(input, axis, taken);
  });
  forEach([&](const ValueInfo &input, size_t axis) {
    if (isExpression(input.shape[axis].param))
      shapes[{input.name, axis}] = *Dim::parse(input.shape[axis].param); // the first of a name gets that name
  });
  for (const OnnxOptions::Size &size : given)
    give(size, where);
}

void InputSizes::add(const ValueInfo &input, size_t axis, std::set<std::string> &taken) {
  std::string_view parameter = input.shape[axis].param;
  Size size{saysNothing(parameter) ? "" : std::string(parameter), std::string(input.name), "", axis};
  auto hasName = [&](const Size &other) { return other.name == size.name; };
  bool isFirst = !size.name.empty() && std::none_of(sizes.begin(), sizes.end(), hasName);
  std::string stem = identifierOf(size.name.empty() ? size.input + "_" + std::to_string(axis) : size.name);
  size.symbol = stem;
  if (!(isFirst && stem == size.name)) // reserved for the first size of that name
    for (int i = 0; !taken.insert(size.symbol).second;)
      size.symbol = stem + "_" + std::to_string(++i);
  shapes[{input.name, axis}] = Dim(size.symbol);
  sizes.push_back(std::move(size));
}

Shape InputSizes::shapeOf(const ValueInfo &input) const {
  Shape shape;
  for (size_t axis = 0; axis < input.shape.size(); ++axis)
    shape.push_back(isNumber(input.shape[axis]) ? Dim(input.shape[axis].value)
                                                : withRanges(resolve(shapes.at({input.name, axis}))));
  return shape;
}

// ---- sizes from options

void InputSizes::give(const OnnxOptions::Size &given, const Location &where) {
  bool isKnown = false;
  for (const Size &size : sizes) {
    if (size.name != given.name && size.symbol != given.name)
      continue;
    isKnown = true;
    if (given.least == given.most)
      equate(Dim(size.symbol), given.least);
    else
      bounds.push_back({size.symbol, given.least, given.most});
  }
  if (isKnown)
    return;
  std::string list;
  for (const Size &size : sizes)
    list += (list.empty() ? "" : ", ") + size.symbol;
  throw Error(where, "",
              "no input has a size called " + quoted(given.name) +
                  (list.empty() ? "; all sizes are numbers" : "; the sizes that are no numbers are " + list));
}

Trace::SizePairs InputSizes::ranges() const {
  Trace::SizePairs pairs;
  for (const OnnxOptions::Size &bound : bounds) {
    Dim size = resolve(Dim(bound.name));
    if (!size.symbol())
      pairs.emplace_back(min(max(withRanges(size), bound.least), bound.most), withRanges(size));
  }
  return pairs;
}

Dim InputSizes::withRanges(const Dim &size) const {
  return size.substitute([&](std::string_view symbol) {
    int64_t least = 0, most = INT64_MAX;
    for (const OnnxOptions::Size &bound : bounds)
      if (resolve(Dim(bound.name)) == Dim(symbol)) {
        least = std::max(least, bound.least);
        most = std::min(most, bound.most);
      }
    return Dim(symbol, least, most, place);
  });
}

// ---- equalities learned from ops

Dim InputSizes::resolve(const Dim &size) const {
  return size.substitute([&](std::string_view symbol) {
    auto at = values.find(std::string(symbol));
    return at == values.end() ? Dim(symbol) : at->second;
  });
}

const InputSizes::Size *InputSizes::find(const Dim &size) const {
  auto symbol = size.symbol();
  auto at = std::find_if(sizes.begin(), sizes.end(),
                         [&](const Size &known) { return symbol && known.symbol == symbol->name; });
  return at == sizes.end() ? nullptr : &*at;
}

bool InputSizes::mayRepeat(const Dim &left, const Dim &right) const {
  const Size *one = find(left), *other = find(right);
  if (!one || !other) // a symbol that is not found is computed by the run
    return left.symbol() && right.symbol();
  return !one->name.empty() && !other->name.empty() && one->name != other->name && one->input != other->input;
}

/// Replaces a symbol. Returns false if the value contains it, or a symbol that is not a size of an input.
bool InputSizes::equate(const Dim &symbol, const Dim &value) {
  const std::string name = symbol.str();
  bool isOfInputs = true;
  for (const Dim::Symbol &used : value.symbols())
    isOfInputs = isOfInputs && used.name != name && find(Dim(used.name));
  if (!isOfInputs || lowerBound(value).value_or(-1) < 0)
    return false;
  for (auto &[other, known] : values)
    known = known.substitute([&](std::string_view used) { return used == name ? value : Dim(used); });
  return values.emplace(name, value).second;
}

/// Replaces a symbol that has a factor: for a*4 and b*8, a by b*2. Returns false if `size` has none.
bool InputSizes::solve(const Dim &size, const Dim &value) {
  auto line = size.linear();
  if (!line || !find(Dim(line->symbol.name)))
    return false;
  Dim rest = value - line->offset;
  return isMultipleOf(rest, line->scale) && equate(Dim(line->symbol.name), floordiv(rest, line->scale));
}

/// With one symbol for all sizes of the same name.
Dim InputSizes::byName(const Dim &size) const {
  return size.substitute([&](std::string_view symbol) {
    const Size *known = find(Dim(symbol));
    if (!known || known->name.empty())
      return Dim(symbol);
    auto first = std::find_if(sizes.begin(), sizes.end(), [&](const Size &other) { return other.name == known->name; });
    return resolve(Dim(first->symbol));
  });
}

bool InputSizes::learn(const Trace::SizePairs &pairs) {
  bool isNew = false;
  for (const auto &[first, second] : pairs) {
    Dim left = resolve(first), right = resolve(second);
    if (left == right)
      continue;
    if (byName(left) == byName(right)) { // equal by name
      for (const Dim &side : {left, right})
        for (const Dim::Symbol &symbol : side.symbols())
          if (Dim named = byName(Dim(symbol.name)); named != resolve(Dim(symbol.name)))
            isNew |= equate(Dim(symbol.name), named);
      continue;
    }
    const Size *one = find(left), *other = find(right);
    bool keepsLeft = one && other && (one->name.empty() == other->name.empty() ? one < other : !one->name.empty());
    if (other && (keepsLeft || !one))
      isNew |= equate(right, left);
    else if (one)
      isNew |= equate(left, right);
    else
      isNew |= solve(right, left) || solve(left, right);
  }
  return isNew;
}

bool InputSizes::learnNames() {
  bool isNew = false;
  for (const Size &size : sizes)
    if (Dim symbol = resolve(Dim(size.symbol)), named = byName(symbol); find(symbol) && named != symbol)
      isNew |= equate(symbol, named);
  return isNew;
}

std::vector<std::string> InputSizes::warnings() const {
  std::vector<std::string> result;
  std::set<std::string_view> seen;
  for (const Size &size : sizes) {
    if (size.name.empty() || !seen.insert(size.name).second)
      continue;
    std::string text;
    std::vector<Dim> distinct;
    for (const Size &other : sizes)
      if (Dim value = resolve(Dim(other.symbol));
          other.name == size.name && std::find(distinct.begin(), distinct.end(), value) == distinct.end()) {
        distinct.push_back(value);
        text += (text.empty() ? "" : ", ") + value.str() + " of " + quoted(other.input);
      }
    if (distinct.size() > 1)
      result.push_back("the name " + quoted(size.name) + " stands for sizes that no op needs equal: " + text);
  }
  return result;
}

} // namespace burin::onnx
