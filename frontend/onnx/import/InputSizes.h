// Symbols for the sizes of a model's inputs.
#pragma once
#include "burin/onnx.h"
#include "frontend/onnx/proto/Proto.h"
#include "frontend/trace/Trace.h"
#include <map>
#include <set>
#include <unordered_map>

namespace burin::onnx {

/// Every size of an input that is not a number gets its own symbol, named after its dim_param or, if exporters give
/// none ("?", "unk__3"), after the input. Ops of the model decide which sizes are equal: sizes that an op needs to be
/// equal are learned, and the model is imported again with one symbol for them. So inputs may differ in sizes of the
/// same name, as in ONNX Runtime, unless an op needs them equal.
class InputSizes {
public:
  InputSizes(const std::vector<const ValueInfo *> &inputs, const std::vector<OnnxOptions::Size> &given,
             const Location &where);

  /// The shape of an input.
  Shape shapeOf(const ValueInfo &input) const;
  /// Pairs that every run must check: sizes with a range that are not plain symbols.
  Trace::SizePairs ranges() const;

  /// Whether the sizes of inputs determine the symbol.
  bool contains(const Dim::Symbol &symbol) const { return find(Dim(symbol.name)); }

  /// Whether two symbols may differ in a run because one of them is 1: sizes of different inputs that have different
  /// names, and sizes that depend on data. Anonymous sizes, and those of one name, are meant to be equal where they
  /// meet.
  bool mayRepeat(const Dim &left, const Dim &right) const;

  /// Merges sizes that an op has needed equal. Returns whether this is new.
  bool learn(const Trace::SizePairs &pairs);
  /// Merges all sizes of the same name. Returns whether this is new.
  bool learnNames();
  /// For each name with several different sizes: a description of them.
  std::vector<std::string> warnings() const;

private:
  struct Size {
    std::string name; // its dim_param; empty if uninformative
    std::string input, symbol;
    size_t axis;
  };
  std::vector<Size> sizes;                                   // sizes with a symbol, in the order of declaration
  std::map<std::string, Dim> values;                         // replacements of symbols
  std::map<std::pair<std::string_view, size_t>, Dim> shapes; // by input and axis: all sizes that are not numbers
  std::vector<OnnxOptions::Size> bounds;                     // those that are ranges, by symbol
  Location place;                                            // of the options

  void add(const ValueInfo &input, size_t axis, std::set<std::string> &taken);
  std::optional<Dim> expression(const std::string &parameter) const;
  void give(const OnnxOptions::Size &given, const Location &where);
  Dim resolve(const Dim &size) const;
  Dim withRanges(const Dim &size) const;
  Dim byName(const Dim &size) const;
  bool equate(const Dim &symbol, const Dim &value);
  bool solve(const Dim &size, const Dim &value);
  const Size *find(const Dim &size) const;
};

} // namespace burin::onnx
