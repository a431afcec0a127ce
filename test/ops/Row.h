// The op test table: how each op is tried out.
#pragma once
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <functional>

namespace burin::test {

struct Operand {
  std::optional<TensorSpec> spec; // nullopt: an optional operand left out
  Draw draw = {};
  bool isIndex = false; // into the first operand along the attribute `axis`, from either end
};

/// One call of an op. Symbols in shapes belong to the example: those of others with the same name are different ones.
struct Example {
  std::vector<Operand> operands;
  Attrs attrs = {};
  std::vector<std::map<std::string, int64_t>> sizes = {}; // values of the symbols, one entry per run
};

struct Row {
  std::string op;
  std::vector<DType> types;
  std::vector<Example> (*examples)(const Row &, DType);
  Tolerance tolerance = {};
  Draw draw = {};                  // of the operands, where the examples do not say otherwise
  std::vector<Attrs> attrs = {{}}; // each is tried
  /// The scale of errors where tolerance.sumEpsilons is set: what it multiplies, by element of the result. `operands`
  /// are null where they are left out. Null for an op that is linear in its operands, whose scale is its result on
  /// absolute values.
  ir::RefTensor (*errorScale)(const Example &, const std::vector<const ir::RefTensor *> &operands) = nullptr;
  bool isLinear() const { return tolerance.sumEpsilons > 0 && !errorScale; }
};

const std::vector<Row> &elementwiseRows();
const std::vector<Row> &reductionRows();
const std::vector<Row> &shapeRows();
const std::vector<Row> &indexRows();
const std::vector<Row> &orderRows();
const std::vector<Row> &contractionRows();
const std::vector<Row> &neuralRows();
std::vector<const Row *> allRows();

inline constexpr Draw kModest{-4, 4, Specials::Modest};
inline const std::vector<DType> kFloats{f32, f64, f16, bf16}, kIntegers{i8, u8, i16, i32, i64},
    kNumbers{f32, f64, f16, bf16, i8, u8, i16, i32, i64}, kIntegersAndBool{i8, u8, i16, i32, i64, boolean},
    kAll{f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean};

/// One example on its own, with operands to try it on.
struct Sample {
  std::string text; // "x f32[n, 33], axes = [1]"
  std::unique_ptr<Graph> graph;
  Tensors inputs;
};
Sample sampleOf(const std::string &op, Example example, uint64_t seed);

/// A graph made ready to run in another way than the interpreter's.
using Runner = std::function<Tensors(const Tensors &inputs)>;

/// Makes one graph of all examples of a row, runs what `prepare` makes of it with several sizes and kinds of values,
/// and returns what differs from the interpreter; "" if nothing does. `how` says in messages which way it is.
std::string tryRow(const Row &row, const std::string &how, uint64_t seed,
                   const std::function<Runner(Graph &)> &prepare);

} // namespace burin::test
