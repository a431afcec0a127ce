#include "burin/functional.h"
#include "burin/tensor/reductions.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/context/AutocastScope.h"

namespace burin {

using namespace detail;

Tensor tensordot(const Tensor &x, const Tensor &y, int64_t count, Location where) {
  LocationScope scope(inScope(where));
  if (count < 0 || count > x.rank() || count > y.rank())
    throw Error(inScope(where), "tensordot",
                "there are not " + std::to_string(count) + " dimensions to sum over in " + str(x.spec()) + " and " +
                    str(y.spec()));
  IntList last, first;
  for (int64_t i = 0; i < count; ++i) {
    last.push_back(x.rank() - count + i);
    first.push_back(i);
  }
  return dot_general(x, y, {}, {}, last, first);
}
Tensor tensordot(const Tensor &x, const Tensor &y, const IntList &axes_x, const IntList &axes_y, Location where) {
  LocationScope scope(inScope(where));
  if (axes_x.size() != axes_y.size())
    throw Error(inScope(where), "tensordot",
                std::to_string(axes_x.size()) + " axes of x cannot be paired with " + std::to_string(axes_y.size()) +
                    " of y");
  IntList ofX, ofY;
  for (size_t i = 0; i < axes_x.size(); ++i) {
    ofX.push_back(axisOf(x, axes_x[i], "tensordot"));
    ofY.push_back(axisOf(y, axes_y[i], "tensordot"));
  }
  return dot_general(x, y, {}, {}, ofX, ofY);
}

Tensor outer(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() != 1 || y.rank() != 1)
    throw Error(inScope(where), "outer", "it takes two vectors, not " + str(x.spec()) + " and " + str(y.spec()));
  return unsqueeze(x, 1) * y;
}

/// beta * x + alpha * product; without beta, x is not read.
static Tensor weightedSum(const Tensor &x, Tensor product, double beta, double alpha, const Location &where) {
  Tensor added = detail::castForProduct(x, where);
  if (alpha != 1)
    product = alpha * product;
  return beta == 0 ? product : (beta == 1 ? added : beta * added) + product;
}
Tensor addmm(const Tensor &x, const Tensor &a, const Tensor &b, double beta, double alpha, Location where) {
  LocationScope scope(inScope(where));
  return weightedSum(x, matmul(a, b), beta, alpha, where);
}
Tensor addmv(const Tensor &x, const Tensor &a, const Tensor &b, double beta, double alpha, Location where) {
  LocationScope scope(inScope(where));
  return weightedSum(x, mv(a, b), beta, alpha, where);
}
Tensor addr(const Tensor &x, const Tensor &a, const Tensor &b, double beta, double alpha, Location where) {
  LocationScope scope(inScope(where));
  return weightedSum(x, outer(a, b), beta, alpha, where);
}

/// Throws unless `scale` is one f32 or has f32 of the sizes `each`, of which one is 1.
static void requireScale(const Tensor &scale, const char *name, const Shape &each, const Location &where) {
  const TensorSpec spec = scale.spec(where);
  if (spec.dtype != DType::f32 || (elements(spec.shape) != Dim(1) && spec.shape != each))
    throw Error(where, "scaled_mm",
                std::string(name) + " " + str(spec) + " must be one number or " + str(TensorSpec{DType::f32, each}));
}

Tensor scaled_mm(const Tensor &a, const Tensor &b, const Tensor &scale_a, const Tensor &scale_b, DType dtype,
                 const std::optional<Tensor> &bias, Location where) {
  LocationScope scope(inScope(where));
  const Location &place = inScope(where);
  const TensorSpec left = a.spec(place), right = b.spec(place);
  if (!isFloat8(left.dtype) || !isFloat8(right.dtype) || left.shape.size() != 2 || right.shape.size() != 2)
    throw Error(place, "scaled_mm",
                "it takes matrices of 8-bit floats, not " + str(left) + " and " + str(right) +
                    "; convert them, for example with .to(f8e4m3fn)");
  requireScale(scale_a, "scale_a", {left.shape[0], 1}, place);
  requireScale(scale_b, "scale_b", {1, right.shape[1]}, place);
  if (!isFloat(dtype) || dtype == DType::f64)
    throw Error(place, "scaled_mm", "the result cannot be " + std::string(name(dtype)) + "; choose f32, f16 or bf16");
  auto ofRows = [](const Tensor &scale) { return elements(scale.shape()) == Dim(1) ? reshape(scale, {}) : scale; };
  const Tensor rows = ofRows(scale_a), columns = ofRows(scale_b), sums = matmul(a, b);
  Tensor product = rows.rank() == 0 && columns.rank() == 0 ? sums * (rows * columns) : sums * rows * columns;
  if (bias && bias->defined())
    product = product + bias->to(DType::f32);
  return product.to(dtype);
}

Tensor linear(const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias, Location where) {
  LocationScope scope(inScope(where));
  if (weight.rank() != 2)
    throw Error(inScope(where), "linear", "the weight is " + str(weight.spec()) + ", but must be [out, in]");
  const Dim in = weight.shape()[1];
  if (x.rank() == 0 || (in.isStatic() && x.shape().back().isStatic() && x.shape().back() != in))
    throw Error(inScope(where), "linear",
                "x is " + str(x.spec()) + ", but for the weight " + str(weight.spec()) +
                    ", which is [out, in], its last dimension must be " + in.str());
  // In eager code, a single op that reads the weight without a transpose; in a graph, the compiler does the same.
  Tensor product = detail::isTracing() ? matmul(x, weight.t()) : dot_general(x, weight, {}, {}, {x.rank() - 1}, {1});
  return bias && bias->defined() ? product + detail::castForProduct(*bias, where) : product;
}

Tensor kron(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  const Shape &a = x.shape(), &b = y.shape();
  if (a.size() != b.size())
    throw Error(inScope(where), "kron", str(x.spec()) + " and " + str(y.spec()) + " differ in rank");
  Shape apartX, apartY, joined;
  for (size_t i = 0; i < a.size(); ++i) {
    apartX.insert(apartX.end(), {a[i], Dim(1)});
    apartY.insert(apartY.end(), {Dim(1), b[i]});
    joined.push_back(a[i] * b[i]);
  }
  return reshape(reshape(x, apartX) * reshape(y, apartY), joined);
}

Tensor cdist(const Tensor &x, const Tensor &y, double p, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() < 2 || y.rank() < 2)
    throw Error(inScope(where), "cdist",
                "it takes [..., P, M] and [..., R, M], not " + str(x.spec()) + " and " + str(y.spec()));
  return norm(unsqueeze(x, -2) - unsqueeze(y, -3), p, -1);
}

Tensor pdist(const Tensor &x, double p, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() != 2)
    throw Error(inScope(where), "pdist", "x is " + str(x.spec()) + ", but must be [N, M]");
  // Pair number q has the row i for which i * (2 N - i - 1) / 2 <= q is largest: a quadratic equation, exact in f64.
  const Dim rows = x.shape()[0], pairs = floordiv(rows * (rows - 1), 2);
  const Tensor n = Tensor(rows).to(DType::f64), q = arange(pairs).to(DType::f64);
  const Tensor i = n - 2 - floor(sqrt(4 * n * (n - 1) - 7 - 8 * q) / 2 - 0.5);
  const Tensor j = q + i + 1 - n * (n - 1) / 2 + (n - i) * (n - i - 1) / 2;
  return norm(take(x, i.to(DType::i64), 0) - take(x, j.to(DType::i64), 0), p, -1);
}

} // namespace burin
