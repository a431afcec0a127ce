// Symbols for the sizes of a model's inputs.
#pragma once
#include "burin/onnx.h"
#include "frontend/onnx/Proto.h"
#include "frontend/trace/Trace.h"
#include <map>
#include <set>
#include <unordered_map>

namespace burin::onnx {

/// Every size of an input that is not a number gets a symbol of its own, called after its dim_param or, where exporters
/// have nothing to say ("?", "unk__3"), after the input. Which of them are equal the ops of the model tell: what they
/// need equal is learned, and the model is imported again with one symbol for these sizes. So two inputs may differ in
/// sizes that share a name, as they may in ONNX Runtime, unless an op needs them equal.
class InputSizes {
public:
  InputSizes(const std::vector<const ValueInfo *> &inputs, const std::vector<OnnxOptions::Size> &given,
             const Location &where);

  /// The shape of an input.
  Shape shapeOf(const ValueInfo &input) const;
  /// The pairs that every run must check: the sizes that are to lie within a range, but are no symbols.
  Trace::SizePairs ranges() const;

  /// Takes sizes that an op has needed equal for one. Returns whether this is new.
  bool learn(const Trace::SizePairs &pairs);
  /// Takes all sizes of one name for one. Returns whether this is new.
  bool learnNames();
  /// For each name that is left with several sizes: which they are.
  std::vector<std::string> warnings() const;

private:
  struct Size {
    std::string name; // its dim_param; empty if that says nothing
    std::string input, symbol;
    size_t axis;
  };
  std::vector<Size> sizes;                                   // that have a symbol, in the order of declaration
  std::map<std::string, Dim> values;                         // what a symbol is replaced by
  std::map<std::pair<std::string_view, size_t>, Dim> shapes; // by input and axis: of all sizes that are not numbers
  std::vector<OnnxOptions::Size> bounds;                     // those that are ranges, by symbol
  Location place;                                            // where they were given

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
