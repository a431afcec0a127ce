#include "burin/tensor/reductions.h"
#include "frontend/tensor/composed/Composed.h"

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

Tensor addmm(const Tensor &x, const Tensor &a, const Tensor &b, double beta, double alpha, Location where) {
  LocationScope scope(inScope(where));
  Tensor product = matmul(a, b);
  if (alpha != 1)
    product = alpha * product;
  return beta == 0 ? product : (beta == 1 ? x : beta * x) + product;
}

Tensor linear(const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias, Location where) {
  LocationScope scope(inScope(where));
  if (weight.rank() != 2)
    throw Error(inScope(where), "linear", "the weight is " + str(weight.spec()) + ", but must be [out, in]");
  Tensor product = matmul(x, weight.t());
  return bias && bias->defined() ? product + *bias : product;
}

Tensor kron(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  const Shape a = x.shape(), b = y.shape();
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

} // namespace burin
