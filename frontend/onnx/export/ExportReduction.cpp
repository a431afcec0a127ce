// Reductions: axes are an input in ONNX.
#include "frontend/onnx/export/Emitter.h"

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

Ref reduce(const OpEmitter &e, const char *op, const Ref &x, bool keepdims) {
  const Ints &axes = e.attr<Ints>("axes");
  if (axes.empty()) // a scalar; without axes ONNX would reduce none or all
    return x;
  return e.graph.node(op, {x, e.graph.list(axes)}, {{"keepdims", int64_t(keepdims)}});
}
Ref reduce(const OpEmitter &e, const char *op, const Ref &x) { return reduce(e, op, x, e.attr<bool>("keepdims")); }

Refs sum(const OpEmitter &e) { return {reduce(e, "ReduceSum", e.in(0))}; }
Refs prod(const OpEmitter &e) { return {reduce(e, "ReduceProd", e.in(0))}; }
Refs mean(const OpEmitter &e) { return {reduce(e, "ReduceMean", e.in(0))}; }
Refs logsumexp(const OpEmitter &e) { return {reduce(e, "ReduceLogSumExp", e.in(0))}; }

/// The sum divided by n - correction, at least 0.
Ref average(const OpEmitter &e, const Ref &x) {
  int64_t correction = e.attr<int64_t>("correction");
  if (correction == 0)
    return reduce(e, "ReduceMean", x);
  Dim count = 1;
  for (int64_t axis : e.attr<Ints>("axes"))
    count = count * e.shape()[size_t(axis)];
  Ref divisor;
  if (count.isStatic()) {
    divisor = e.graph.number(std::max(double(count.value() - correction), 0.0), x.dtype);
  } else {
    Ref number = e.graph.node("Squeeze", {e.graph.size(count), e.graph.list({0})});
    number = e.graph.node("Sub", {number, e.graph.number(double(correction), DType::i64)});
    divisor = e.graph.cast(e.graph.node("Max", {number, e.graph.number(0, DType::i64)}), x.dtype);
  }
  return e.graph.node("Div", {reduce(e, "ReduceSum", x), divisor});
}

Refs averaged(const OpEmitter &e) { return {average(e, e.in(0))}; }

Refs variance(const OpEmitter &e) {
  Ref x = e.in(0), distance = e.graph.node("Sub", {x, reduce(e, "ReduceMean", x, true)});
  return {average(e, e.graph.node("Mul", {distance, distance}))};
}

/// Counts non-zero (or zero) elements; correct for empty dimensions, too.
Refs any(const OpEmitter &e) {
  Ref flags = e.graph.cast(e.raw(0), DType::boolean);
  Ref count = reduce(e, "ReduceSum", e.graph.cast(flags, DType::i64));
  return {e.graph.node("Greater", {count, e.graph.number(0, DType::i64)}, {}, DType::boolean)};
}
Refs all(const OpEmitter &e) {
  Ref flags = e.graph.node("Not", {e.graph.cast(e.raw(0), DType::boolean)});
  Ref count = reduce(e, "ReduceSum", e.graph.cast(flags, DType::i64));
  return {e.graph.node("Equal", {count, e.graph.number(0, DType::i64)}, {}, DType::boolean)};
}

/// An empty reduction gives the limit of the op's type, not of the one it is computed in.
Refs extreme(const OpEmitter &e, const char *op, const char *limit, int64_t end) {
  Ref y = reduce(e, op, e.in(0));
  return {e.spec().dtype == DType::i16 ? e.graph.node(limit, {y, e.graph.number(double(end), y.dtype)}) : y};
}
Refs largest(const OpEmitter &e) { return isBool(e.spec().dtype) ? any(e) : extreme(e, "ReduceMax", "Max", INT16_MIN); }
Refs smallest(const OpEmitter &e) {
  return isBool(e.spec().dtype) ? all(e) : extreme(e, "ReduceMin", "Min", INT16_MAX);
}

Refs arg(const OpEmitter &e) {
  return {e.graph.node(e.info.name == std::string_view("argmax") ? "ArgMax" : "ArgMin", {e.in(0)},
                       {{"axis", e.attr<int64_t>("axis")}, {"keepdims", int64_t(e.attr<bool>("keepdims"))}},
                       DType::i64)};
}

Refs cumsum(const OpEmitter &e) {
  Ref axis = e.graph.number(double(e.attr<int64_t>("axis")), DType::i64);
  return {
      e.graph.node("CumSum", {e.graph.cast(e.in(0), inSingle(e.result().dtype)), axis},
                   {{"exclusive", int64_t(e.attr<bool>("exclusive"))}, {"reverse", int64_t(e.attr<bool>("reverse"))}})};
}

DType wideSum(DType dtype) { return isFloat(dtype) ? inSingle(dtype) : DType::i64; }
DType ordered(DType dtype) { return dtype == DType::i16 || isBool(dtype) ? DType::i32 : inSingle(dtype); }

} // namespace

std::span<const ExportRule> reductionExports() {
  static const ExportRule rules[] = {
      {"reduce_sum", sum, wideSum},
      {"reduce_prod", prod, wideSum},
      {"reduce_max", largest, ordered},
      {"reduce_min", smallest, ordered},
      {"reduce_mean", mean},
      {"reduce_var", variance, inSingleThroughout},
      {"reduce_average", averaged, inSingleThroughout},
      {"reduce_any", any, asIs},
      {"reduce_all", all, asIs},
      {"logsumexp", logsumexp},
      {"argmax", arg, ordered},
      {"argmin", arg, ordered},
      {"cumsum", cumsum},
  };
  return rules;
}

} // namespace burin::onnx
