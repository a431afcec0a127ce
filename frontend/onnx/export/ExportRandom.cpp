// Random numbers: the formulas of ir/reference/ops/ReferenceRandom.h in integer operators, because ONNX's generators
// give other numbers. Results that depend on nothing but their shape are constants.
#include "frontend/onnx/export/Emitter.h"
#include "ir/reference/Reference.h"
#include "ir/reference/ReferenceScalar.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace burin::onnx {

namespace {

/// i64 arithmetic on numbers from 0 to 2^63 - 1.
struct Integers {
  GraphEmitter &g;

  Ref number(int64_t value) const { return g.number(double(value), DType::i64); }
  Ref add(const Ref &a, const Ref &b) const { return g.node("Add", {a, b}); }
  Ref sub(const Ref &a, const Ref &b) const { return g.node("Sub", {a, b}); }
  Ref mul(const Ref &a, int64_t b) const { return g.node("Mul", {a, number(b)}); }
  Ref shifted(const Ref &a, int bits) const { return g.node("Div", {a, number(int64_t(1) << bits)}); }
  /// The last bits, also of negative numbers.
  Ref low(const Ref &a, int bits) const { return g.node("BitwiseAnd", {a, number((int64_t(1) << bits) - 1)}); }
  /// Bits 32 to 63, also of negative numbers.
  Ref high(const Ref &a) const { return low(shifted(sub(a, low(a, 32)), 32), 32); }
  Ref either(const Ref &a, const Ref &b) const { return g.node("BitwiseXor", {a, b}); }
};

/// The words of a product of 32-bit numbers, without products of more than 48 bits.
std::pair<Ref, Ref> product(const Integers &i, const Ref &x, uint32_t by) {
  const Ref upper = i.mul(x, by >> 16), lower = i.mul(x, by & 0xffff);
  return {i.shifted(i.add(upper, i.shifted(lower, 16)), 16), i.low(i.add(i.mul(i.low(upper, 16), 1 << 16), lower), 32)};
}

/// Philox 4x32-10: four 32-bit words per block, [blocks, 4]. A Scan runs the rounds; it scans their keys.
Ref philox(GraphEmitter &g, const Ref &key, const Ref &blocks) {
  constexpr int kRounds = 10;
  const Integers i{g};
  std::vector<int64_t> steps[2];
  for (uint32_t round = 0; round < kRounds; ++round) {
    steps[0].push_back(round * 0x9E3779B9u);
    steps[1].push_back(round * 0xBB67AE85u);
  }
  const Ref zero = i.sub(blocks, blocks);
  Refs inputs{i.low(blocks, 32),
              i.high(blocks),
              zero,
              zero,
              i.low(i.add(i.low(key, 32), g.list(steps[0])), 32),
              i.low(i.add(i.high(key), g.list(steps[1])), 32)};
  const Dim count(g.nameFor("blocks")); // ONNX Runtime takes equal names for equal sizes
  auto body = g.subgraph("philox", [&] {
    Refs x;
    for (const char *name : {"word", "word", "word", "word", "key", "key"}) {
      x.push_back({g.nameFor(name), DType::i64});
      g.model.inputs.push_back({x.back().name, {DType::i64, x.size() > 4 ? Shape() : Shape{count}}});
    }
    const auto [high0, low0] = product(i, x[0], 0xD2511F53);
    const auto [high1, low1] = product(i, x[2], 0xCD9E8D57);
    for (const Ref &word : {i.either(i.either(high1, x[1]), x[4]), low1, i.either(i.either(high0, x[3]), x[5]), low0})
      g.model.outputs.push_back({g.node("Identity", {word}).name, {DType::i64, {count}}});
  });
  Refs columns;
  for (const Ref &word : g.nodes("Scan", inputs, 4, {{"body", body}, {"num_scan_inputs", int64_t(2)}}))
    columns.push_back(g.node("Unsqueeze", {{word.name, DType::i64}, g.list({1})}));
  return g.node("Concat", columns, {{"axis", int64_t(1)}});
}

/// A column of a matrix with the columns of one word of each, as a vector.
Ref columnOf(GraphEmitter &g, const Ref &matrix, int64_t column) {
  return g.node("Gather", {matrix, g.number(double(column), DType::i64)}, {{"axis", int64_t(1)}});
}

/// The random words of a draw of `shape`, whose key is the seed plus the operand `operand` if it is present.
struct Words {
  const OpEmitter &e;
  Shape shape;
  Ref key;
  Dim count;

  Words(const OpEmitter &e, const Shape &shape, size_t operand) : e(e), shape(shape), count(elements(shape)) {
    key = e.graph.stored({DType::i64, {}, std::vector<int64_t>{e.attr<int64_t>("seed")}});
    if (e.has(operand))
      key = e.graph.node("Add", {key, e.raw(operand)});
  }

  /// [*, columns] 32-bit words, at least `count` * columns of them.
  Ref matrix(int64_t columns) const {
    GraphEmitter &g = e.graph;
    const Ref blocks = g.node("Squeeze", {g.size(ceildiv(count * columns, 4)), g.list({0})});
    const Ref range = g.node("Range", {g.number(0, DType::i64), blocks, g.number(1, DType::i64)});
    return g.node("Reshape", {philox(g, key, range), g.list({-1, columns})});
  }
  /// At least `count` numbers in [0, 1) of type f32, or f64.
  Ref units(DType dtype) const {
    GraphEmitter &g = e.graph;
    const Integers i{g};
    const bool isWide = dtype == DType::f64;
    const Ref all = matrix(isWide ? 2 : 1);
    const Ref bits = isWide ? i.add(i.mul(columnOf(g, all, 1), 1 << 21), i.shifted(columnOf(g, all, 0), 11))
                            : i.shifted(columnOf(g, all, 0), 8);
    return g.node("Mul", {g.cast(bits, dtype), g.number(isWide ? 0x1p-53 : 0x1p-24, dtype)});
  }
  /// The first elements of a vector in the shape of the result.
  Ref result(const Ref &all) const {
    GraphEmitter &g = e.graph;
    const Ref first = g.node("Slice", {all, g.list({0}), g.size(count), g.list({0})});
    return g.reshape(first, {count}, shape);
  }
};

DType wideOf(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// The largest value of the type below x.
double valueBelow(DType dtype, double x) {
  if (dtype == DType::f64)
    return std::nextafter(x, -HUGE_VAL);
  x = ir::roundTo(dtype, x);
  for (double step = std::max(std::fabs(x) * 0x1p-26, 0x1p-151);; step *= 2)
    if (double below = ir::roundTo(dtype, x - step); below < x || !std::isfinite(x))
      return below;
}

/// The value of an op without operands and with a static shape; nullopt for others.
std::optional<Ref> evaluated(const OpEmitter &e, mlir::Operation *op, const TensorSpec &spec) {
  constexpr int64_t kMaxElements = 1 << 24;
  const Dim count = elements(spec.shape);
  if (op->getNumOperands() != 0 || !count.isStatic() || count.value() > kMaxElements)
    return std::nullopt;
  auto results = ir::evaluate(op, {}, {.roundF32 = true, .maxElements = kMaxElements});
  return failed(results) ? std::nullopt : std::optional(e.graph.stored(results->front()));
}

Refs uniform(const OpEmitter &e) {
  if (std::optional<Ref> constant = evaluated(e, e.op, e.result()))
    return {*constant};
  GraphEmitter &g = e.graph;
  const DType dtype = e.result().dtype, wide = wideOf(dtype);
  const double low = e.attr<double>("low"), high = e.attr<double>("high");
  const Words words(e, e.result().shape, 0);
  Ref x =
      g.node("Mul", {words.units(wide), g.number(wide == DType::f64 ? high - low : float(high) - float(low), wide)});
  x = g.node("Add", {x, g.number(low, wide)});
  if (low < high)
    x = g.node("Min", {x, g.number(valueBelow(dtype, high), wide)});
  return {words.result(x)};
}

Refs normal(const OpEmitter &e) {
  if (std::optional<Ref> constant = evaluated(e, e.op, e.result()))
    return {*constant};
  GraphEmitter &g = e.graph;
  const DType wide = wideOf(e.result().dtype);
  auto number = [&](double value) { return g.number(value, wide); };
  const Words words(e, e.result().shape, 0);
  const Ref pairs = g.node("Reshape", {words.units(wide), g.list({-1, 2})});
  const Ref above = g.node("Add", {columnOf(g, pairs, 0), number(wide == DType::f64 ? 0x1p-53 : 0x1p-24)});
  const Ref r = g.node("Sqrt", {g.node("Mul", {g.node("Log", {above}), number(-2)})});
  const Ref t = g.node("Mul", {columnOf(g, pairs, 1), number(2 * std::numbers::pi)});
  Refs both;
  for (const char *op : {"Cos", "Sin"})
    both.push_back(g.node("Unsqueeze", {g.node("Mul", {r, g.node(op, {t})}), g.list({1})}));
  const Ref all = g.node("Reshape", {g.node("Concat", both, {{"axis", int64_t(1)}}), g.list({-1})});
  const Ref scaled = g.node("Mul", {all, number(e.attr<double>("stddev"))});
  return {words.result(g.node("Add", {scaled, number(e.attr<double>("mean"))}))};
}

Refs integers(const OpEmitter &e) {
  if (std::optional<Ref> constant = evaluated(e, e.op, e.result()))
    return {*constant};
  const int64_t low = e.attr<int64_t>("low");
  const uint64_t range = uint64_t(e.attr<int64_t>("high")) - uint64_t(low);
  const Words words(e, e.result().shape, 0);
  const Integers i{e.graph};
  const Ref all = words.matrix(2), upper = columnOf(e.graph, all, 1), lower = columnOf(e.graph, all, 0);
  // The words 2 and 3 of the product of two numbers of 64 bits.
  const auto [high00, low00] = product(i, lower, uint32_t(range));
  const auto [high01, low01] = product(i, lower, uint32_t(range >> 32));
  const auto [high10, low10] = product(i, upper, uint32_t(range));
  const auto [high11, low11] = product(i, upper, uint32_t(range >> 32));
  const Ref carried = i.shifted(i.add(i.add(high00, low01), low10), 32);
  const Ref second = i.add(i.add(high01, high10), i.add(low11, carried));
  const Ref third = i.add(high11, i.shifted(second, 32));
  const Ref offset = i.add(i.mul(third, int64_t(1) << 32), i.low(second, 32));
  const Ref least = e.graph.stored({DType::i64, {}, std::vector<int64_t>{low}});
  return {words.result(i.add(offset, least))};
}

/// True where a uniform number is below the probability.
Refs bernoulli(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  const DType wide = wideOf(e.spec().dtype);
  const Ref probability = g.cast(e.raw(0), wide);
  std::optional<Ref> numbers;
  if (!e.has(1)) { // the numbers may be constants
    mlir::OpBuilder builder(e.op);
    mlir::Operation *draw = ir::createOp(builder, e.op->getLoc(), *ir::findOp("random_uniform"), {},
                                         {e.shape(), e.attr<int64_t>("seed"), 0.0, 1.0, wide});
    numbers = draw ? evaluated(e, draw, {wide, e.shape()}) : std::nullopt;
    if (draw)
      draw->erase();
  }
  if (!numbers) {
    const Words words(e, e.shape(), 1);
    numbers = words.result(words.units(wide));
  }
  return {g.node("Less", {*numbers, probability}, {}, DType::boolean)};
}

/// The first two words of the block and the key that a generator's numbers are.
Refs generatorKey(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  const Integers i{g};
  auto part = [&](const Refs &inputs) { return g.node("Gather", inputs, {{"axis", int64_t(0)}}); };
  const Ref words = philox(g, part({e.raw(0), g.number(0, DType::i64)}), part({e.raw(0), g.list({1})}));
  const Ref key = i.add(columnOf(g, words, 0), i.mul(columnOf(g, words, 1), int64_t(1) << 32));
  return {g.node("Squeeze", {key, g.list({0})})};
}

} // namespace

std::span<const ExportRule> randomExports() {
  static const ExportRule rules[] = {
      {"random_uniform", uniform, asIs}, {"random_normal", normal, asIs},    {"random_integers", integers, asIs},
      {"bernoulli", bernoulli, asIs},    {"random_key", generatorKey, asIs},
  };
  return rules;
}

} // namespace burin::onnx
