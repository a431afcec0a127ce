// The op table in plain C++ without MLIR, shared by eager calls, tracing and the verifier.
#pragma once
#include "burin/dim.h"
#include <span>
#include <variant>

namespace burin::ir {

/// The value of an op's attribute.
using Attr = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType, Shape>;
enum class AttrKind : uint8_t { Bool, Int, Float, String, Ints, DType, Shape }; // in the order of Attr

struct AttrInfo {
  const char *name;
  AttrKind kind;
  bool optional = false; // has a default
  Attr fallback;         // the default
  bool newSize = false;  // names the result size that a run computes
};

enum class Arity : uint8_t { One, Optional, Variadic };
struct OperandInfo {
  const char *name;
  Arity arity;
};

/// How the frontend adapts operands before the strict op is recorded; see OpBase.td.
enum class Normalize : uint8_t { None, Promote, Broadcast, Float, BroadcastFloat };
/// The type that an Autocast scope computes the op in: the operands' own, the scope's, or f32.
enum class Autocast : uint8_t { None, Lower, F32 };
/// What the op does with 8-bit floats; see OpBase.td.
enum class Float8 : uint8_t { Refused, Moved, Multiplied };
enum class Domain : uint8_t { Any, Numeric, Float, Integer, Bool };

struct InferCall;

struct OpInfo {
  const char *name; // "reduce_sum"; the MLIR op is "burin." + name
  const char *summary;
  std::vector<OperandInfo> operands;
  std::vector<AttrInfo> attrs;
  Normalize normalize;
  Domain domain; // elementwise ops only, else Any
  Autocast autocast;
  bool elementwise;
  bool boolResult;
  bool variadicResults;
  bool internal;
  Float8 float8;
  bool (*infer)(InferCall &);

  /// The attribute that names the size that the op defines; null if there is none.
  const AttrInfo *newSize() const {
    for (const AttrInfo &attr : attrs)
      if (attr.newSize)
        return &attr;
    return nullptr;
  }
};

/// Indices of the ops in the table; stable within one build only.
enum class OpId : uint16_t {
#include "ir/OpIds.inc"
};

/// All ops in table order (generated).
std::span<const OpInfo> opTable();
inline const OpInfo &opInfo(OpId id) { return opTable()[static_cast<size_t>(id)]; }
/// nullptr if there is no such op.
const OpInfo *findOp(std::string_view name);

/// One call of inference: types of operands and attributes in, types of results or an error out. Operands and
/// attributes are complete and in table order; an absent optional operand is nullopt.
struct InferCall {
  const OpInfo &info;
  std::vector<std::optional<TensorSpec>> operands;
  std::vector<Attr> attrs;
  /// Calls of the frontend are loose: they may have negative axes, empty lists for defaults, -1 in reshape, 1-d matmul,
  /// and operands that need broadcasting or promotion (per info.normalize). Inference rewrites `attrs` to their
  /// canonical form; results are those of the normalised op. The verifier is strict: attributes must be canonical,
  /// operands agree.
  bool strict = false;

  std::vector<TensorSpec> results;
  std::string error; // one or two lines: the problem, with shapes, and a way out. No op name, no location.

  const TensorSpec &operand(size_t i) const { return *operands[i]; }
  bool has(size_t i) const { return i < operands.size() && operands[i].has_value(); }
  template <class T> T &attr(std::string_view name) {
    for (size_t i = 0; i < info.attrs.size(); ++i)
      if (name == info.attrs[i].name)
        return std::get<T>(attrs[i]);
    std::abort(); // the table and the inference function disagree
  }
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }

  /// Two sizes that operands must have in common and that are not known to be equal: the reason of a failure.
  /// `repeats`: a size of 1 would broadcast.
  struct Unequal {
    Dim left, right;
    bool repeats = false;
  };
  std::optional<Unequal> unequal{};
  /// Whether two sizes are equal; notes them if not.
  bool same(const Dim &left, const Dim &right, bool repeats = false) {
    if (left != right)
      unequal = {left, right, repeats};
    return left == right;
  }
  /// Whether two shapes are equal; notes the first sizes that are not.
  bool same(const Shape &left, const Shape &right);
};

/// Fills `results`, or sets `error`, possibly `unequal`, and returns false.
bool infer(InferCall &call);

/// Element type of a result with mixed operands, by PyTorch's promotion: bool < integers < floats; within a class the
/// wider wins, f16 with bf16 gives f32, u8 with a signed type gives the next wider signed type. `weak` marks C++
/// numbers: they raise the class only (bool -> i64 -> f32), never the width.
DType promote(std::span<const DType> types, std::span<const bool> weak);

} // namespace burin::ir
