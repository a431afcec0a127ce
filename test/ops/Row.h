// The op test table: how each op is tested.
#pragma once
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <functional>

namespace burin::test {

struct Operand {
  std::optional<TensorSpec> spec; // nullopt: an absent optional operand
  Draw draw = {};
  bool isIndex = false; // an index into the first operand along the attribute `axis`; may count from the end
};

/// One call of an op. Symbols are local to the example: equal names in different examples are different symbols.
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
  Draw draw = {};                  // default of the operands, unless the example has its own
  std::vector<Attrs> attrs = {{}}; // each is tested
  /// Computes the error scale of each element of the result, which tolerance.sumEpsilons multiplies; pointers to absent
  /// operands are null. A null function stands for an op that is linear in its operands: its error scale is its result
  /// for the absolute values of the operands.
  ir::RefTensor (*errorScale)(const Example &, const std::vector<const ir::RefTensor *> &operands) = nullptr;
  bool isLinear() const { return tolerance.sumEpsilons > 0 && !errorScale; }
};

const std::vector<Row> &elementwiseRows();
const std::vector<Row> &reductionRows();
const std::vector<Row> &shapeRows();
const std::vector<Row> &indexRows();
const std::vector<Row> &orderRows();
const std::vector<Row> &contractionRows();
bool isOfContraction(const Row &);
const std::vector<Row> &neuralRows();
std::vector<const Row *> allRows();
/// A row of products in f32 with the bound of operands that are rounded to tf32: two relative errors of 2^-11 for each
/// product.
Row roundedToTf32(Row row);
/// A row of products in f32 with the bound of operands that are two terms of bf16: per product two relative errors of
/// 2^-17, and the product of the smaller terms, 2^-16.
Row splitToBf16(Row row);
/// Products and convolutions as for GPUs that multiply by warpgroups, of the types that these take: rows of 16-bit
/// floats and bytes, and rows of 8-bit floats, of which tensor cores cut the sums: with less exact bounds, and without
/// special values, as a large product cuts the others.
std::vector<Row> rowsByWarpgroups();
/// "matmul on sm_90a", as the name of a test.
std::string nameByWarpgroups(const Row &row);
/// Attention of 16-bit floats with as many query rows as warpgroups of a GPU take.
Row attentionByWarpgroups();

inline constexpr Draw kModest{-4, 4, Specials::Modest};
inline const std::vector<DType> kFloats{f32, f64, f16, bf16}, kIntegers{i8, u8, i16, i32, i64},
    kNumbers{f32, f64, f16, bf16, i8, u8, i16, i32, i64}, kIntegersAndBool{i8, u8, i16, i32, i64, boolean},
    kAll{f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean},
    kStored{f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean, f8e4m3fn, f8e5m2}; // ops that move or convert

/// One example by itself, with operands.
struct Sample {
  std::string text; // "x f32[n, 33], axes = [1]"
  std::unique_ptr<Graph> graph;
  Tensors inputs;
};
Sample sampleOf(const std::string &op, Example example, uint64_t seed);

/// Evaluates a graph in another way than the interpreter.
using Runner = std::function<Tensors(const Tensors &inputs)>;

/// Examples of a row for a test: without --long one of `parts`, from number `first` on, others for each type; at least
/// one.
struct Share {
  size_t parts = 1, first = 0;
};

/// Builds one graph of all examples of a row, runs the runner that `prepare` makes of it with several sizes and kinds
/// of values, and returns the difference from the interpreter, or "". `how` names the runner in messages.
std::string tryRow(const Row &row, const std::string &how, uint64_t seed, const std::function<Runner(Graph &)> &prepare,
                   Share share = {});

} // namespace burin::test
