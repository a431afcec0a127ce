// Generates random calls of ops with extreme sizes and attributes.
#pragma once
#include "ir/infer/OpInfo.h"
#include <algorithm>
#include <climits>
#include <cmath>
#include <random>

namespace burin::test {
class Generator {
public:
  explicit Generator(uint32_t seed) : random(seed) {}

  size_t below(size_t n) { return random() % n; }

  int64_t number() {
    static const int64_t extremes[] = {
        0, 1, 2, 3, 4, -1, -2, 7, 1000003, INT64_MAX, INT64_MIN, INT64_MAX - 1, int64_t(1) << 32};
    return extremes[below(below(3) ? 6 : std::size(extremes))];
  }
  Dim dim() {
    switch (below(8)) {
    case 0:
      return Dim("a") * (number() % 5) + number() % 5;
    case 1:
      return Dim("b");
    case 2:
      return floordiv(Dim("a") + number() % 5, 2);
    case 3:
      return Dim(std::max<int64_t>(0, number()));
    default:
      return Dim(static_cast<int64_t>(below(5)));
    }
  }
  Shape shape(bool anyNumber) {
    Shape s(below(below(10) ? 5 : 40));
    for (Dim &d : s)
      d = anyNumber && below(3) == 0 ? Dim(number()) : dim();
    return s;
  }
  DType dtype() { return DType(below(2) ? 0 : below(kNumDTypes)); }
  std::vector<int64_t> ints() {
    std::vector<int64_t> v(below(below(10) ? 5 : 70));
    for (int64_t &x : v)
      x = number();
    return v;
  }
  ir::Attr attr(ir::AttrKind kind) {
    static const char *strings[] = {"", "nchw", "nhwc", "constant", "reflect", "edge", "add", "set", "tanh"};
    static const double reals[] = {0, -1.5, 1e300, INFINITY};
    switch (kind) {
    case ir::AttrKind::Bool:
      return below(2) == 0;
    case ir::AttrKind::Int:
      return number();
    case ir::AttrKind::Float:
      return reals[below(std::size(reals))];
    case ir::AttrKind::String:
      return std::string(strings[below(std::size(strings))]);
    case ir::AttrKind::Ints:
      return ints();
    case ir::AttrKind::DType:
      return dtype();
    case ir::AttrKind::Shape:
      return shape(true);
    }
    return false;
  }

private:
  std::mt19937 random;
};
/// Returns a call of `info` that is usually close to a valid one.
inline ir::InferCall randomCall(Generator &g, const ir::OpInfo &info) {
  ir::InferCall call{info, {}, {}, g.below(4) == 0, {}, {}};
  size_t operands = g.below(6) ? info.operands.size() : g.below(5);
  TensorSpec common{g.dtype(), g.shape(false)};
  for (size_t i = 0; i < operands; ++i)
    call.operands.push_back(g.below(12) == 0  ? std::nullopt
                            : g.below(3) == 0 ? std::optional(TensorSpec{g.dtype(), g.shape(false)})
                                              : std::optional(common));
  for (const ir::AttrInfo &a : info.attrs)
    call.attrs.push_back(a.optional && g.below(2) ? a.fallback : g.attr(a.kind));
  return call;
}

/// Valid calls of ops for which random operands rarely match.
inline std::vector<ir::InferCall> validCalls() {
  using Ints = std::vector<int64_t>;
  struct Example {
    const char *op;
    std::vector<Shape> operands;
    std::vector<std::pair<std::string, ir::Attr>> attrs;
  };
  Dim b("b"), h("h");
  const Example examples[] = {
      {"conv",
       {{b, 4, h, 8}, {6, 2, 3, 3}, {6}},
       {{"groups", int64_t(2)}, {"padding", Ints{1, 0}}, {"strides", Ints{2}}}},
      {"conv", {{1, 8, 9, 4}, {3, 3, 4, 6}, {6}}, {{"layout", std::string("nhwc")}, {"dilations", Ints{2, 1}}}},
      {"conv_transpose",
       {{b, 4, h}, {4, 3, 3}, {6}},
       {{"groups", int64_t(2)}, {"strides", Ints{2}}, {"output_padding", Ints{1}}}},
      {"max_pool", {{b, 4, h, 8}}, {{"kernel", Ints{3, 2}}, {"padding", Ints{1}}, {"ceil_mode", true}}},
      {"avg_pool", {{b, 4, 7, 8}}, {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"padding", Ints{1, 0, 0, 1}}}},
      {"adaptive_avg_pool", {{b, 4, h, 8}}, {{"output_size", Ints{2, 3}}}},
      {"matmul", {{b, 1, 4, 8}, {3, 8, 5}}, {}},
      {"dot_general",
       {{b, 4, 8}, {8, b, 5}},
       {{"lhs_batch", Ints{0}}, {"rhs_batch", Ints{1}}, {"lhs_contract", Ints{2}}, {"rhs_contract", Ints{0}}}},
      {"contract",
       {{b, h, 5}, {b, 3, 15, 16}},
       {{"batch", int64_t(1)},
        {"columns", Shape{33}},
        {"kernel", Ints{3}},
        {"strides", Ints{2}},
        {"dilations", Ints{1}}}},
      {"batch_norm", {{b, 4, h}, {4}, {4}, {4}, {4}}, {}},
      {"group_norm", {{b, 4, h}, {4}, {4}}, {{"groups", int64_t(2)}}},
      {"layer_norm", {{b, 4, h}, {4, h}, {4, h}}, {{"axis", int64_t(-2)}}},
      {"scaled_dot_product_attention", {{b, 2, h, 8}, {b, 2, 6, 8}, {b, 2, 6, 4}, {h, 6}}, {}},
      {"slice", {{b, h, 8}}, {{"starts", Shape{1, -3, 2}}, {"stops", Shape{b, h, -1}}, {"steps", Ints{1, 2, 3}}}},
      {"pad", {{b, h, 8}}, {{"low", Ints{1, 0, -2}}, {"high", Ints{0, 3, 1}}, {"mode", std::string("reflect")}}},
      {"split", {{b, 8}}, {{"sizes", Ints{1, -1, 2}}, {"axis", int64_t(-1)}}},
      {"concat", {{b, 8}, {h, 8}, {3, 8}}, {}},
      {"reshape", {{b, 8, h}}, {{"shape", Shape{h, 4, -1}}}},
      {"where", {{b, 1}, {h}, {b, h}}, {}},
      {"broadcast_to", {{b, 1}}, {{"shape", Shape{3, -1, h}}}},
  };
  std::vector<ir::InferCall> calls;
  for (const Example &e : examples) {
    ir::InferCall call{*ir::findOp(e.op), {}, {}, false, {}, {}};
    for (const Shape &shape : e.operands)
      call.operands.push_back(TensorSpec{DType::f32, shape});
    if (std::string_view(e.op) == "where")
      call.operands[0]->dtype = DType::boolean;
    for (const ir::AttrInfo &a : call.info.attrs) {
      auto at = std::find_if(e.attrs.begin(), e.attrs.end(), [&](auto &given) { return given.first == a.name; });
      call.attrs.push_back(at == e.attrs.end() ? a.fallback : at->second);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

/// Replaces one size, operand, attribute, or one number of an attribute.
inline void mutate(Generator &g, ir::InferCall &call) {
  if (call.attrs.empty() || g.below(2)) {
    auto &operand = call.operands[g.below(call.operands.size())];
    if (g.below(4) && operand && !operand->shape.empty())
      operand->shape[g.below(operand->shape.size())] = g.dim();
    else
      operand = g.below(3) ? std::optional(TensorSpec{g.dtype(), g.shape(false)}) : std::nullopt;
    return;
  }
  size_t i = g.below(call.attrs.size());
  auto *list = std::get_if<std::vector<int64_t>>(&call.attrs[i]);
  if (list && !list->empty() && g.below(3))
    (*list)[g.below(list->size())] = g.number();
  else
    call.attrs[i] = g.attr(call.info.attrs[i].kind);
}

} // namespace burin::test
