// Products and distances of vectors and matrices; each function throws if an operand has another rank.
#pragma once
#include "burin/tensor.h"

namespace burin {

/// [n, k] · [k, m]. As torch.mm.
BURIN_API Tensor mm(const Tensor &x, const Tensor &y, Location where = Location::current());
/// [b, n, k] · [b, k, m]. As torch.bmm.
BURIN_API Tensor bmm(const Tensor &x, const Tensor &y, Location where = Location::current());
/// [n, k] · [k]. As torch.mv.
BURIN_API Tensor mv(const Tensor &x, const Tensor &y, Location where = Location::current());
/// The sum of the products of two vectors. As torch.dot.
BURIN_API Tensor dot(const Tensor &x, const Tensor &y, Location where = Location::current());
inline Tensor vdot(const Tensor &x, const Tensor &y, Location where = Location::current()) { return dot(x, y, where); }
/// beta * x + alpha * (a · b): of a matrix and a vector, and of two vectors, x[i, j] + a[i] * b[j]. As torch.addmv,
/// torch.addr.
BURIN_API Tensor addmv(const Tensor &x, const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
                       Location where = Location::current());
BURIN_API Tensor addr(const Tensor &x, const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
                      Location where = Location::current());
/// Sums of products along the last dimensions of both. As torch.inner.
BURIN_API Tensor inner(const Tensor &x, const Tensor &y, Location where = Location::current());
/// norm(x - y, p). As torch.dist.
BURIN_API Tensor dist(const Tensor &x, const Tensor &y, double p = 2, Location where = Location::current());
/// beta * x + alpha * (a · b) of matrices [b, n, k] and [b, k, m]. As torch.baddbmm.
BURIN_API Tensor baddbmm(const Tensor &x, const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
                         Location where = Location::current());
/// The product of `n` equal square matrices [..., k, k]; n >= 0. As torch.matrix_power.
BURIN_API Tensor matrix_power(const Tensor &x, int64_t n, Location where = Location::current());
/// The cross product of vectors of 3 along `axis`. As torch.linalg.cross.
BURIN_API Tensor cross(const Tensor &x, const Tensor &y, int64_t axis = -1, Location where = Location::current());
/// Covariances of the variables in the rows of x [variables, samples]. As torch.cov.
BURIN_API Tensor cov(const Tensor &x, int64_t correction = 1, Location where = Location::current());
/// The norm of x - y + eps along the last axis. As torch.nn.functional.pairwise_distance.
BURIN_API Tensor pairwise_distance(const Tensor &x, const Tensor &y, double p = 2, double eps = 1e-6,
                                   bool keepdims = false, Location where = Location::current());
/// Distances (the p-norm) of all pairs of different rows of x [N, M], in the order (0, 1), (0, 2), … (N - 2, N - 1):
/// [N * (N - 1) / 2]. The number of rows may be symbolic. As torch.nn.functional.pdist.
BURIN_API Tensor pdist(const Tensor &x, double p = 2, Location where = Location::current());

} // namespace burin
