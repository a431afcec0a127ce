#include "test/gradients/Rows.h"

namespace burin::test {

namespace {

const Dim n("n"), m("m");
using Xs = const std::vector<Tensor> &;

std::vector<GradientRow> elementwise() {
  std::vector<Shape> one{{n, 3}}, two{{n, 3}, {n, 3}};
  return {
      {"add", two, [](Xs x) { return x[0] + x[1]; }},
      {"add row", {{n, 3}, {3}}, [](Xs x) { return x[0] + x[1]; }},
      {"sub", {{n, 1}, {1, m}}, [](Xs x) { return x[0] - x[1]; }},
      {"mul", {{n, 3}, {1, 1}}, [](Xs x) { return x[0] * x[1]; }},
      {"mul by itself", one, [](Xs x) { return x[0] * x[0]; }},
      {"div", two, [](Xs x) { return x[0] / x[1]; }, 0.5, 2},
      {"floor_divide", two, [](Xs x) { return floor_divide(x[0], x[1]) + x[0]; }, 0.5, 2},
      {"remainder", two, [](Xs x) { return x[0] % x[1]; }, 0.5, 2},
      {"fmod", two, [](Xs x) { return fmod(-x[0] * 3, x[1]); }, 0.5, 2},
      {"pow", two, [](Xs x) { return pow(x[0], x[1]); }, 0.5, 2},
      {"square", one, [](Xs x) { return pow(x[0], 2); }},
      {"pow 0", one, [](Xs x) { return pow(x[0], 0.0); }},
      {"power of 0", one, [](Xs x) { return pow(zeros_like(x[0]), x[0]); }, 0.5, 2},
      {"maximum", two, [](Xs x) { return maximum(x[0], x[1]); }},
      {"minimum", two, [](Xs x) { return minimum(x[0], x[1]); }},
      {"maximum of the same", one, [](Xs x) { return maximum(x[0], x[0]); }},
      {"atan2", two, [](Xs x) { return atan2(x[0], x[1]); }, 0.5, 2},
      {"neg", one, [](Xs x) { return -x[0]; }},
      {"abs", one, [](Xs x) { return abs(x[0]); }},
      {"steps", one, [](Xs x) { return floor(x[0]) + ceil(x[0]) + round(x[0]) + trunc(x[0]) + sign(x[0]); }},
      {"exp", one, [](Xs x) { return exp(x[0]); }},
      {"expm1", one, [](Xs x) { return expm1(x[0]); }},
      {"log", one, [](Xs x) { return log(x[0]); }, 0.5, 2},
      {"log1p", one, [](Xs x) { return log1p(x[0]); }, 0, 2},
      {"sqrt", one, [](Xs x) { return sqrt(x[0]); }, 0.5, 2},
      {"rsqrt", one, [](Xs x) { return rsqrt(x[0]); }, 0.5, 2},
      {"reciprocal", one, [](Xs x) { return reciprocal(x[0]); }, 0.5, 2},
      {"sin", one, [](Xs x) { return sin(x[0]); }},
      {"cos", one, [](Xs x) { return cos(x[0]); }},
      {"tan", one, [](Xs x) { return tan(x[0]); }, -1, 1},
      {"asin", one, [](Xs x) { return asin(x[0]); }, -0.9, 0.9},
      {"acos", one, [](Xs x) { return acos(x[0]); }, -0.9, 0.9},
      {"atan", one, [](Xs x) { return atan(x[0]); }},
      {"sinh", one, [](Xs x) { return sinh(x[0]); }},
      {"cosh", one, [](Xs x) { return cosh(x[0]); }},
      {"asinh", one, [](Xs x) { return asinh(x[0]); }},
      {"acosh", one, [](Xs x) { return acosh(x[0]); }, 1.5, 3},
      {"atanh", one, [](Xs x) { return atanh(x[0]); }, -0.9, 0.9},
      {"tanh", one, [](Xs x) { return tanh(x[0]); }},
      {"erf", one, [](Xs x) { return erf(x[0]); }},
      {"sigmoid", one, [](Xs x) { return sigmoid(x[0]); }},
      {"relu", one, [](Xs x) { return relu(x[0]); }},
      {"leaky_relu", one, [](Xs x) { return leaky_relu(x[0], 0.1); }},
      {"elu", one, [](Xs x) { return elu(x[0], 1.5); }},
      {"gelu", one, [](Xs x) { return gelu(x[0]); }},
      {"gelu tanh", one, [](Xs x) { return gelu(x[0], "tanh"); }},
      {"silu", one, [](Xs x) { return silu(x[0]); }},
      {"softplus", one, [](Xs x) { return softplus(x[0], 1.5, 2.0); }},
      {"hardswish", one, [](Xs x) { return hardswish(x[0]); }, -5, 5},
      {"hardsigmoid", one, [](Xs x) { return hardsigmoid(x[0]); }, -5, 5},
      {"where", two, [](Xs x) { return where(x[0] > x[1], x[0], x[1] * 2); }},
      {"check", two, [](Xs x) { return check(x[0] == x[0], x[0] * x[1], "not a number"); }},
      {"clamp", {{n, 3}, {n, 3}, {n, 3}}, [](Xs x) { return clamp(x[0] * 2, x[1] - 0.5, x[2] + 0.5); }},
      {"cast to integers and back", one, [](Xs x) { return x[0].to(i64).to(f64) * x[0]; }},
      {"dropout", one, [](Xs x) { return dropout(x[0], 0.5, false); }},
      {"bernoulli", one, [](Xs x) { return bernoulli(sigmoid(x[0]), 7) * x[0]; }},
      {"detach", one, [](Xs x) { return detach(x[0]) * 0 + x[0]; }},
  };
}

std::vector<GradientRow> reductions() {
  std::vector<Shape> one{{n, 3, 2}};
  return {
      {"reduce_sum", one, [](Xs x) { return x[0].sum(); }},
      {"reduce_sum rows", one, [](Xs x) { return x[0].sum({0, 2}); }},
      {"reduce_sum keepdims", one, [](Xs x) { return x[0].sum(1, true); }},
      {"reduce_mean", one, [](Xs x) { return x[0].mean({0, 1}); }},
      {"reduce_mean last", one, [](Xs x) { return x[0].mean(-1, true); }},
      {"reduce_prod", one, [](Xs x) { return x[0].prod(1); }},
      {"reduce_prod two", one, [](Xs x) { return x[0].prod({0, 2}); }},
      {"reduce_prod of 0", one, [](Xs x) { return maximum(x[0], 0).prod({1, 2}, true); }},
      {"reduce_max", one, [](Xs x) { return x[0].max({1, 2}); }},
      {"reduce_min", one, [](Xs x) { return x[0].min(1, true); }},
      {"reduce_var", one, [](Xs x) { return x[0].var({1, 2}); }},
      {"reduce_var population", one, [](Xs x) { return x[0].var(1, true, 0); }},
      {"logsumexp", one, [](Xs x) { return logsumexp(x[0], {1}); }},
      {"softmax", one, [](Xs x) { return softmax(x[0], 1); }},
      {"log_softmax", one, [](Xs x) { return log_softmax(x[0]); }},
      {"cumprod", one, [](Xs x) { return cumprod(x[0], 1); }},
      {"cumprod of 0", one, [](Xs x) { return cumprod(maximum(x[0], 0), 0, true); }},
      {"cumprod reverse", one, [](Xs x) { return cumprod(x[0], 1, false, true) + cumprod(x[0], 2, true, true); }},
      {"cumsum", one, [](Xs x) { return cumsum(x[0], 1) + cumsum(x[0], 0, true, true); }},
  };
}

std::vector<GradientRow> shapes() {
  return {
      {"reshape", {{n, 6}}, [](Xs x) { return reshape(x[0], {-1, 2, 3}); }},
      {"flatten", {{n, m, 2}}, [](Xs x) { return x[0].flatten(); }},
      {"squeeze", {{n, 1, 2}}, [](Xs x) { return squeeze(x[0], {1}); }},
      {"unsqueeze", {{n, 2}}, [](Xs x) { return unsqueeze(x[0], {1}); }},
      {"transpose", {{n, 3, 2}}, [](Xs x) { return transpose(x[0], {2, 0, 1}); }},
      {"broadcast_to", {{3, 1}}, [](Xs x) { return broadcast_to(x[0], {2, 3, 4}); }},
      {"broadcast_to symbol", {{1, 3}, {n, 3}}, [](Xs x) { return broadcast_to(x[0], {x[1].size(0), 3}) * x[1]; }},
      {"slice", {{n, 5}}, [](Xs x) { return x[0][{Slice(), Slice(1, 4)}]; }},
      {"slice steps", {{n, 5}}, [](Xs x) { return x[0][{Slice(), Slice(None, None, 2)}]; }},
      {"slice backwards", {{n, 5}}, [](Xs x) { return x[0][{Slice(), Slice(None, None, -2)}]; }},
      {"slice nothing", {{n, 5}}, [](Xs x) { return x[0][{Slice(), Slice(2, 2)}]; }},
      {"slice rows", {{n + 2, 2}}, [](Xs x) { return x[0][{Slice(1, -1)}]; }},
      {"slice to a size",
       {{n, 2}, {n + 3, 2}},
       [](Xs x) { return x[0] * slice(x[1], {1, 0}, {x[0].size(0) + 1, 2}, {1, 1}); }},
      {"slice some", {{n, 2}}, [](Xs x) { return x[0][{Slice(0, 2)}]; }},
      {"flip", {{n, 3}}, [](Xs x) { return flip(x[0], {0, 1}); }},
      {"concat", {{n, 3}, {n, 2}}, [](Xs x) { return concat({x[0], x[1], x[0]}, 1); }},
      {"concat rows", {{n, 3}, {m, 3}}, [](Xs x) { return concat({x[0], x[1]}); }},
      {"stack", {{n, 3}, {n, 3}}, [](Xs x) { return stack({x[0], x[1]}, 1); }},
      {"split", {{n, 5}}, [](Xs x) { return split(x[0], {2, 1, 2}, 1)[2]; }},
      {"tile", {{n, 3}}, [](Xs x) { return tile(x[0], {2, 3}); }},
      {"pad", {{n, 3}}, [](Xs x) { return pad(x[0], {1, 2}, {0, 1}, "constant", 3.0); }},
      {"pad crops", {{n + 1, 4}, {n}}, [](Xs x) { return pad(x[0], {0, -1}, {2, -1}); }},
      {"pad interior", {{3, 2}}, [](Xs x) { return pad(x[0], {0, 1}, {1, 0}, "constant", 0.0, {2, 1}); }},
      {"pad edge", {{n + 1, 3}, {n}}, [](Xs x) { return pad(x[0], {2, 1}, {1, 2}, "edge"); }},
      {"pad reflect", {{n + 3, 3}, {n}}, [](Xs x) { return pad(x[0], {2, 1}, {1, 2}, "reflect"); }},
      {"take", {{n + 1, 3}, {n}}, [](Xs x) { return take(x[0], tensor({{0, -1}, {0, 0}}), 0); }},
      {"take columns", {{n, 4}}, [](Xs x) { return take(x[0], tensor({1, 3, 1, 0}), 1); }},
      {"take one", {{n, 4}}, [](Xs x) { return take(x[0], tensor(2), 1); }},
      {"gather",
       {{n, 4}},
       [](Xs x) { return gather(x[0], broadcast_to(tensor({1, 3, 1, -1, 2}), {x[0].size(0), 5}), 1); }},
      {"masked_select", {{n + 1, 4}, {n}}, [](Xs x) { return pow(masked_select(x[0], x[0] > 0), 3).sum(); }},
      {"prefix", {{n + 2, 2}, {n}}, [](Xs x) { return pow(prefix(x[0], tensor(2)), 2).sum(); }},
      {"scatter",
       {{n, 4}, {n, 3}},
       [](Xs x) { return scatter(x[0], broadcast_to(tensor({1, 9, 1}), {x[0].size(0), 3}), x[1], 1, "set", true); }},
      {"scatter mul",
       {{n, 4}, {n, 3}},
       [](Xs x) { return scatter(x[0], broadcast_to(tensor({1, 9, 1}), {x[0].size(0), 3}), x[1], 1, "mul", true); }},
      {"scatter mul of 0",
       {{n, 4}, {n, 3}},
       [](Xs x) {
         Tensor index = broadcast_to(tensor({1, 2, 1}), {x[0].size(0), 3});
         return scatter(maximum(x[0], 0), index, maximum(x[1], 0) * x[1], 1, "mul");
       }},
      {"scatter max",
       {{n, 4}, {n, 3}},
       [](Xs x) { return scatter(x[0], broadcast_to(tensor({1, -9, 1}), {x[0].size(0), 3}), x[1], 1, "max", true); }},
      {"scatter min",
       {{n, 4}, {n, 3}},
       [](Xs x) { return scatter(x[0], broadcast_to(tensor({3, -1, 0}), {x[0].size(0), 3}), x[1], 1, "min"); }},
      {"scatter add",
       {{n, 4}, {n, 3}},
       [](Xs x) { return scatter(x[0], broadcast_to(tensor({1, -9, 1}), {x[0].size(0), 3}), x[1], 1, "add", true); }},
      {"tril", {{n, 4, 3}}, [](Xs x) { return tril(x[0], -1); }},
      {"triu", {{n, 4, 3}}, [](Xs x) { return triu(x[0], 1); }},
  };
}

std::vector<GradientRow> products() {
  return {
      {"matmul", {{n, 3}, {3, 2}}, [](Xs x) { return matmul(x[0], x[1]); }},
      {"matmul batched", {{2, n, 3}, {2, 3, 2}}, [](Xs x) { return matmul(x[0], x[1]); }},
      {"matmul broadcast", {{n, 2, 3}, {3, 2}}, [](Xs x) { return matmul(x[0], x[1]); }},
      {"matmul transposed", {{n, 3}, {n, 2}}, [](Xs x) { return matmul(x[0].t(), x[1]); }},
      {"matmul of vectors", {{n}, {n}}, [](Xs x) { return matmul(x[0], x[1]); }},
      {"matmul by a vector", {{n, 3}, {3}}, [](Xs x) { return matmul(x[0], x[1]); }},
      {"dot_general",
       {{2, n, 3, 4}, {4, 5, 2, 3}},
       [](Xs x) { return dot_general(x[0], x[1], {0}, {2}, {3, 2}, {0, 3}); }},
      {"conv", {{n, 2, 7}, {3, 2, 3}, {3}}, [](Xs x) { return conv(x[0], x[1], x[2], {2}, {1}); }},
      {"conv 2d",
       {{n, 2, 5, 6}, {2, 2, 3, 2}},
       [](Xs x) { return conv(x[0], x[1], std::nullopt, {1, 2}, {1, 0, 0, 1}, {2, 1}); }},
      {"conv groups", {{n, 4, 5}, {6, 2, 2}}, [](Xs x) { return conv(x[0], x[1], std::nullopt, {1}, {0}, {1}, 2); }},
      {"conv depthwise", {{n, 3, 5}, {3, 1, 3}}, [](Xs x) { return conv(x[0], x[1], std::nullopt, {1}, {1}, {1}, 3); }},
      {"conv unread", {{n, 1, 8}, {1, 1, 2}}, [](Xs x) { return conv(x[0], x[1], std::nullopt, {3}); }},
      {"conv sizes", {{2, 2, n + 3}, {3, 2, 3}}, [](Xs x) { return conv(x[0], x[1], std::nullopt, {2}, {1}); }},
      {"conv sizes groups",
       {{1, 4, n + 2, m + 4}, {2, 2, 2, 3}},
       [](Xs x) { return conv(x[0], x[1], std::nullopt, {1, 3}, {0, 2}, {1, 2}, 2); }},
      {"conv_transpose",
       {{n, 2, 4}, {2, 3, 3}, {3}},
       [](Xs x) { return conv_transpose(x[0], x[1], x[2], {2}, {1}, {1}, 1, {1}); }},
      {"conv_transpose groups",
       {{n, 4, 3, 2}, {4, 1, 2, 2}},
       [](Xs x) { return conv_transpose(x[0], x[1], std::nullopt, {1, 2}, {0}, {2, 1}, 2); }},
  };
}

std::vector<GradientRow> neural() {
  return {
      {"max_pool", {{n, 2, 7}}, [](Xs x) { return max_pool(x[0], {3}, {2}, {1}); }},
      {"max_pool 2d", {{n, 1, 5, 6}}, [](Xs x) { return max_pool(x[0], {2, 3}, {2, 2}, {0, 1}, {1, 2}); }},
      {"max_pool ceil", {{n, 1, 6}}, [](Xs x) { return max_pool(x[0], {3}, {2}, {0}, {1}, true); }},
      {"max_pool leaves out", {{n, 1, 8}}, [](Xs x) { return max_pool(x[0], {2}, {3}); }},
      {"max_pool sizes", {{1, 2, n + 2}}, [](Xs x) { return max_pool(x[0], {3}, {2}, {1}); }},
      {"max_pool sizes ceil",
       {{1, 1, n + 4, m + 3}},
       [](Xs x) { return max_pool(x[0], {2, 3}, {3, 2}, {0, 1}, {2, 1}, true); }},
      {"max_pool far apart", {{n, 1, 9, 8}}, [](Xs x) { return max_pool(x[0], {2, 2}, {3, 4}); }},
      {"avg_pool sizes", {{1, 2, n + 3}}, [](Xs x) { return avg_pool(x[0], {3}, {2}, {1}); }},
      {"avg_pool sizes without padding",
       {{1, 1, n + 4}},
       [](Xs x) { return avg_pool(x[0], {3}, {2}, {1}, {}, true, false); }},
      {"avg_pool", {{n, 2, 6, 4}}, [](Xs x) { return avg_pool(x[0], {2, 2}); }},
      {"avg_pool padded", {{n, 2, 7}}, [](Xs x) { return avg_pool(x[0], {3}, {2}, {1}); }},
      {"avg_pool without padding", {{n, 2, 7}}, [](Xs x) { return avg_pool(x[0], {3}, {2}, {1}, {}, false, false); }},
      {"avg_pool ceil", {{n, 2, 8}}, [](Xs x) { return avg_pool(x[0], {3}, {2}, {1}, {}, true); }},
      {"avg_pool ceil without padding",
       {{n, 2, 8}},
       [](Xs x) { return avg_pool(x[0], {3}, {2}, {1}, {}, true, false); }},
      {"adaptive_avg_pool sizes", {{1, 2, n + 3, m + 2}}, [](Xs x) { return adaptive_avg_pool(x[0], {3, 2}); }},
      {"adaptive_avg_pool", {{n, 2, 6, m + 1}, {m}}, [](Xs x) { return adaptive_avg_pool(x[0], {4, 1}); }},
      {"layer_norm", {{n, 4}, {4}, {4}}, [](Xs x) { return layer_norm(x[0], x[1], x[2]); }},
      {"layer_norm two", {{n, 2, 3}, {2, 3}}, [](Xs x) { return layer_norm(x[0], x[1], std::nullopt, 1, 0.1); }},
      {"layer_norm plain", {{n, 3}}, [](Xs x) { return layer_norm(x[0]); }},
      {"rms_norm", {{n, 4}, {4}}, [](Xs x) { return rms_norm(x[0], x[1]); }},
      {"batch_norm",
       {{n, 3, 2}, {3}, {3}, {3}, {3}},
       [](Xs x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); },
       0.5,
       2},
      {"group_norm", {{n, 4, 3}, {4}, {4}}, [](Xs x) { return group_norm(x[0], 2, x[1], x[2]); }},
      {"instance_norm", {{n, 2, 5}, {2}, {2}}, [](Xs x) { return instance_norm(x[0], x[1], x[2]); }},
      {"attention",
       {{2, n, 3}, {2, m, 3}, {2, m, 2}},
       [](Xs x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"attention causal",
       {{1, 3, 2}, {1, 4, 2}, {1, 4, 2}},
       [](Xs x) { return scaled_dot_product_attention(x[0], x[1], x[2], std::nullopt, true, 0.3); }},
      {"attention masked",
       {{3, 2}, {4, 2}, {4, 2}, {3, 4}},
       [](Xs x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }},
      {"attention of some",
       {{3, 2}, {2, 2}, {2, 2}},
       [](Xs x) {
         return scaled_dot_product_attention(x[0], x[1], x[2], tensor({{true, false}, {false, false}, {true, true}}));
       }},
  };
}

/// A recurrent layer whose weight all steps use, and whose second state is the step number.
Tensor recurrent(Xs x, bool reverse, bool lastOnly) {
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    Tensor hidden = tanh(matmul(states[0], x[2]) + elements[0]);
    return ScanResult{{hidden, states[1] + 1}, {hidden * elements[0] * states[1].to(f64), states[1]}};
  };
  ScanResult all = scan(step, {x[1], tensor(1)}, {x[0]}, reverse);
  return lastOnly ? all.states[0] : all.outputs[0] + all.states[0] * x[2].sum();
}

std::vector<GradientRow> loops() {
  std::vector<Shape> operands{{n, 2}, {2}, {2, 2}};
  auto independent = [](Xs x) {
    auto step = [](const std::vector<Tensor> &, const std::vector<Tensor> &elements) {
      return ScanResult{{}, {elements[0] * elements[0] * elements[1].sum()}};
    };
    return scan(step, {}, {x[0], x[1]}).outputs[0];
  };
  return {
      {"scan", operands, [](Xs x) { return recurrent(x, false, false); }},
      {"scan reverse", operands, [](Xs x) { return recurrent(x, true, false); }},
      {"scan to the last state", operands, [](Xs x) { return recurrent(x, true, true); }},
      {"scan without states", {{n, 2}, {n, 3}}, independent},
  };
}

} // namespace

const std::vector<GradientRow> &gradientRows() {
  static const std::vector<GradientRow> rows = [] {
    std::vector<GradientRow> all;
    for (auto part : {elementwise, reductions, shapes, products, neural, loops})
      for (GradientRow &row : part())
        all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

} // namespace burin::test
