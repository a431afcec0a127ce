// Norms, condition numbers, products and powers of matrices.
#include "burin/functional.h"
#include "burin/graph/control.h"
#include "frontend/tensor/linalg/Linalg.h"
#include <cmath>

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

Tensor vector_norm(const Tensor &x, double ord, Axes axes, bool keepdims, Location where) {
  const Call call("vector_norm", where);
  return burin::norm(call.operand(x, 0), ord, std::move(axes), keepdims).to(x.dtype());
}

/// The two axes of matrices, not negative.
static std::pair<int64_t, int64_t> matrixAxes(const Tensor &x, const Axes &axes, const Call &call) {
  if (axes.size() != 2)
    call.fail("a matrix has two axes, not " + std::to_string(axes.size()));
  const int64_t first = axisOf(x, axes[0], "matrix_norm"), second = axisOf(x, axes[1], "matrix_norm");
  if (first == second)
    call.fail("the axes of a matrix must differ, but both are " + std::to_string(first));
  return {first, second};
}
/// x with the matrices last.
static Tensor matricesLast(const Tensor &x, std::pair<int64_t, int64_t> axes) {
  IntList order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axes.first && i != axes.second)
      order.push_back(i);
  order.push_back(axes.first);
  order.push_back(axes.second);
  return transpose(x, order);
}
static Tensor keepAxes(const Tensor &norm, std::pair<int64_t, int64_t> axes, bool keepdims) {
  return keepdims ? unsqueeze(norm, {axes.first, axes.second}) : norm;
}

Tensor matrix_norm(const Tensor &A, const std::string &ord, Axes axes, bool keepdims, Location where) {
  const Call call("matrix_norm", where);
  Tensor a = call.operand(A);
  const auto pair = matrixAxes(a, axes, call);
  if (ord == "fro")
    return burin::norm(a, 2, {pair.first, pair.second}, keepdims).to(A.dtype());
  if (ord != "nuc")
    call.fail("the norm \"" + ord + "\" must be fro, nuc or a number");
  return keepAxes(reduce_sum(svdvals(matricesLast(a, pair)), {-1}), pair, keepdims).to(A.dtype());
}

Tensor matrix_norm(const Tensor &A, double ord, Axes axes, bool keepdims, Location where) {
  const Call call("matrix_norm", where);
  Tensor a = call.operand(A);
  const auto pair = matrixAxes(a, axes, call);
  const double size = std::abs(ord);
  if (size != 1 && size != 2 && !std::isinf(size))
    call.fail("the order " + std::to_string(ord) + " must be 1, 2, infinity or one of these negated");
  Tensor ofMatrix = matricesLast(a, pair);
  Tensor sizes = size == 2 ? svdvals(ofMatrix) : reduce_sum(abs(ofMatrix), {size == 1 ? -2 : -1});
  return keepAxes(ord > 0 ? reduce_max(sizes, {-1}) : reduce_min(sizes, {-1}), pair, keepdims).to(A.dtype());
}

Tensor norm(const Tensor &x, Location where) { return vector_norm(x, 2, {}, false, where); }
Tensor norm(const Tensor &x, double ord, Axes axes, bool keepdims, Location where) {
  const Call call("norm", where);
  if (axes.size() == 2)
    return matrix_norm(x, ord, std::move(axes), keepdims);
  if (axes.size() > 2 || (axes.empty() && x.rank() > 2))
    call.fail("with an order it takes one axis or two, or a vector or a matrix, not " + str(x.spec()));
  return axes.empty() && x.rank() == 2 ? matrix_norm(x, ord, {-2, -1}, keepdims)
                                       : vector_norm(x, ord, std::move(axes), keepdims);
}
Tensor norm(const Tensor &x, const char *ord, Axes axes, bool keepdims, Location where) {
  const Call call("norm", where);
  return matrix_norm(x, ord, axes.empty() ? Axes{-2, -1} : axes, keepdims);
}

static Tensor ratioOfValues(const Tensor &A, double p, const Call &call) {
  Tensor s = svdvals(call.operand(A)), largest = reduce_max(s, {-1}), smallest = reduce_min(s, {-1});
  return (p > 0 ? largest / smallest : smallest / largest).to(A.dtype());
}
/// By norms; a singular matrix has an infinite one.
template <class Ord> static Tensor productOfNorms(const Tensor &A, Ord p, const Call &call) {
  Tensor a = call.square(A);
  CheckedResult inverse = inv_ex(a);
  Tensor product = matrix_norm(a, p) * matrix_norm(inverse.result, p);
  return burin::where(inverse.info != 0, INFINITY, product).to(A.dtype());
}
Tensor cond(const Tensor &A, double p, Location where) {
  const Call call("cond", where);
  return std::abs(p) == 2 ? ratioOfValues(A, p, call) : productOfNorms(A, p, call);
}
Tensor cond(const Tensor &A, const char *p, Location where) {
  const Call call("cond", where);
  return productOfNorms(A, p, call);
}

// ---- products

Tensor cross(const Tensor &x, const Tensor &y, int64_t axis, Location where) { return burin::cross(x, y, axis, where); }

namespace {

/// The order of products with the least number of multiplications (Cormen et al., Introduction to Algorithms, 15.2).
class Chain {
public:
  explicit Chain(const std::vector<Tensor> &xs) : xs(xs), splits(xs.size(), std::vector<size_t>(xs.size())) {
    std::vector<double> sizes{double(rowsOf(xs[0]).value())};
    for (const Tensor &x : xs)
      sizes.push_back(double(columnsOf(x).value()));
    std::vector<std::vector<double>> costs(xs.size(), std::vector<double>(xs.size(), 0));
    for (size_t length = 1; length < xs.size(); ++length)
      for (size_t i = 0; i + length < xs.size(); ++i) {
        const size_t j = i + length;
        costs[i][j] = INFINITY;
        for (size_t k = i; k < j; ++k)
          if (double cost = costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
              cost < costs[i][j]) {
            costs[i][j] = cost;
            splits[i][j] = k;
          }
      }
  }
  /// The product of the matrices i … j.
  Tensor product(size_t i, size_t j) const {
    return i == j ? xs[i] : matmul(product(i, splits[i][j]), product(splits[i][j] + 1, j));
  }

private:
  const std::vector<Tensor> &xs;
  std::vector<std::vector<size_t>> splits;
};

} // namespace

Tensor multi_dot(const std::vector<Tensor> &given, Location where) {
  const Call call("multi_dot", where);
  if (given.size() < 2)
    call.fail("it takes at least two tensors, not " + std::to_string(given.size()));
  std::vector<Tensor> xs = given;
  const bool isRow = xs.front().rank() == 1, isColumn = xs.back().rank() == 1;
  if (isRow)
    xs.front() = unsqueeze(xs.front(), {0});
  if (isColumn)
    xs.back() = unsqueeze(xs.back(), {1});
  bool isStatic = true;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].rank() != 2 || (i > 0 && columnsOf(xs[i - 1]) != rowsOf(xs[i])))
      call.fail("operand " + std::to_string(i) + ", " + str(given[i].spec()) +
                ", is no matrix that fits to the one before");
    isStatic = isStatic && rowsOf(xs[i]).isStatic() && columnsOf(xs[i]).isStatic();
  }
  Tensor result = xs[0];
  if (isStatic)
    result = Chain(xs).product(0, xs.size() - 1);
  else
    for (size_t i = 1; i < xs.size(); ++i)
      result = matmul(result, xs[i]);
  if (isColumn)
    result = squeeze(result, {1});
  return isRow ? squeeze(result, {0}) : result;
}

Tensor matrix_power(const Tensor &A, int64_t n, Location where) {
  const Call call("matrix_power", where);
  Tensor a = call.square(A);
  return burin::matrix_power(n < 0 ? inv(a) : a, n < 0 ? -n : n).to(A.dtype());
}

// ---- the exponential

/// The Padé approximant of degree 13 of exp(a), for matrices of 1-norms up to about 5.4.
static Tensor pade(const Tensor &a) {
  constexpr double b[] = {64764752532480000,
                          32382376266240000,
                          7771770303897600,
                          1187353796428800,
                          129060195264000,
                          10559470521600,
                          670442572800,
                          33522128640,
                          1323241920,
                          40840800,
                          960960,
                          16380,
                          182,
                          1};
  // Coefficients are divided by b[0], so that they fit f32.
  auto c = [&](size_t i) { return b[i] / b[0]; };
  Tensor one = identity(batchOf(a), rowsOf(a), rowsOf(a), a.dtype());
  Tensor a2 = matmul(a, a), a4 = matmul(a2, a2), a6 = matmul(a2, a4);
  Tensor odd = matmul(a6, c(13) * a6 + c(11) * a4 + c(9) * a2) + c(7) * a6 + c(5) * a4 + c(3) * a2 + c(1) * one;
  Tensor even = matmul(a6, c(12) * a6 + c(10) * a4 + c(8) * a2) + c(6) * a6 + c(4) * a4 + c(2) * a2 + c(0) * one;
  odd = matmul(a, odd);
  return solveFactored(factorize(even - odd), even + odd);
}

static Tensor exponential(const Tensor &a) {
  if (isEmpty(rowsOf(a)))
    return a;
  constexpr double most = 4; // below 5.37, the limit of the approximant for f64
  Tensor norms = reduce_max(reduce_sum(abs(a), {-2}, true), {-1}, true);
  Tensor halvings = ceil(log2(maximum(norms / most, 1.0)));
  halvings = burin::where(is_finite(halvings), halvings, 0.0);
  Tensor result = pade(a * exp2(-halvings));
  auto goesOn = [&](const Tensor &, const Tensor &round) { return any(round < halvings); };
  auto square = [&](const Tensor &x, const Tensor &round) {
    return std::pair{burin::where(round < halvings, matmul(x, x), x), round + 1.0};
  };
  return while_loop(goesOn, square, std::pair{result, zeros({}, a.dtype())}).first;
}

Tensor matrix_exp(const Tensor &A, Location where) {
  const Call call("matrix_exp", where);
  auto f = [](const std::vector<Tensor> &in) { return std::vector<Tensor>{exponential(in[0])}; };
  // exp([[Aᵀ, G], [0, Aᵀ]]) has the derivative at Aᵀ along G in its upper right corner.
  auto vjp = [](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
    Tensor across = in[0].t();
    const Dim n = rowsOf(across);
    Tensor upper = concat({across, g[0]}, -1), lower = concat({zeros_like(across), across}, -1);
    return std::vector<Tensor>{firstRows(matrix_exp(concat({upper, lower}, -2)), n).slice(in[0].rank() - 1, n)};
  };
  return custom_vjp(f, vjp)({call.square(A)})[0].to(A.dtype());
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
