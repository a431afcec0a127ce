// Helpers of linear algebra. Functions without checks take f32 or f64, matrices in the last two dimensions.
#pragma once
#include "burin/graph/loops.h"
#include "burin/tensor/math/linalg.h"
#include "burin/tensor/reductions.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/context/AutocastScope.h"

namespace burin::linalg {

/// A call of a public function: its errors name the caller's line, and its ops keep the types of their operands.
class Call {
public:
  Call(const char *name, const Location &where) : place(detail::inScope(where)), scope(place), name(name) {}

  /// x in the type that it is computed in. Throws unless it is a float and has at least `rank` dimensions.
  Tensor operand(const Tensor &x, int64_t rank = 2) const;
  /// The same; throws also if the matrices are not square.
  Tensor square(const Tensor &x) const;
  [[noreturn]] void fail(const std::string &problem) const { throw Error(place, name, problem); }

  const Location place;

private:
  LocationScope scope;
  detail::AutocastTypeScope exact{std::nullopt};
  const char *const name;
};

inline const Dim &rowsOf(const Tensor &x) { return x.shape()[size_t(x.rank() - 2)]; }
inline const Dim &columnsOf(const Tensor &x) { return x.shape().back(); }
/// Sizes before the matrices.
Shape batchOf(const Tensor &x);
/// batch with two more dimensions.
Shape matrices(Shape batch, const Dim &rows, const Dim &columns);
/// The common batch of two lists of matrices. Throws if they do not fit.
Shape commonBatch(const Tensor &x, const Tensor &y, const Call &call);

/// The index of each row as a column [n, 1], and of each column as a row [1, n].
inline Tensor rowIndices(const Dim &n) { return iota({n, 1}, DType::i64, 0); }
inline Tensor columnIndices(const Dim &n) { return iota({1, n}, DType::i64, 1); }
/// A batch of identity matrices [rows, columns].
Tensor identity(const Shape &batch, const Dim &rows, const Dim &columns, DType dtype);
/// Row k or column k, k: i64[], as a matrix.
inline Tensor rowAt(const Tensor &x, const Tensor &k) { return take(x, reshape(k, {1}), x.rank() - 2); }
inline Tensor columnAt(const Tensor &x, const Tensor &k) { return take(x, reshape(k, {1}), x.rank() - 1); }
/// The first `count` rows or columns.
Tensor firstRows(const Tensor &x, const Dim &count);
Tensor firstColumns(const Tensor &x, const Dim &count);
/// The diagonals of matrices [..., n, n] as columns [..., n, 1].
Tensor diagonalColumn(const Tensor &x);
/// Distance from 1 to the next number.
double epsilonOf(DType dtype);
/// Whether a size is known to be 0; loops must not be entered then.
inline bool isEmpty(const Dim &size) { return size == Dim(0); }

/// Factors of A[permutation] = L · U, see lu_factor.
struct Lu {
  Tensor packed;      // [..., m, n]
  Tensor pivots;      // i64 [..., min(m, n)], from 0
  Tensor permutation; // i64 [..., m, 1]: the rows of A in order of elimination
  Tensor sign;        // [..., 1, 1], of the permutation
};
Lu factorize(const Tensor &a);
/// X with A · X = B. Zeros on the diagonal of U give infinities and NaN.
Tensor solveFactored(const Lu &lu, const Tensor &b);
/// The inverse without check.
Tensor inverse(const Tensor &a);
/// For each matrix 0, or 1 + the index of the first true element of isBad [..., n, 1]: i32.
Tensor firstBad(const Tensor &isBad);
/// Solves with a triangular matrix, left, whose other half is 0.
Tensor solveTriangle(const Tensor &a, const Tensor &b, bool upper, bool unit = false);

/// Q and R of a Householder factorisation, Q [..., m, columns]; without `columns` no Q.
QrResult householder(const Tensor &a, const std::optional<Dim> &columns);

/// Rotations of n / 2 pairs of rows or columns at a time: in step `round` (i64[]) index i is paired with partners[i]
/// (i64[n]), which is i itself if it has none. Steps 0 … n - 1 pair each index with each other one.
Tensor partners(const Dim &n, const Tensor &round);
/// The tangent of the rotation that makes pairs of diagonal elements (own, other) with off-diagonal element `between`
/// diagonal: new_i = cos · (x_i - tan_i · x_partner(i)). 0 where `rotates` is false. `isFirst`: i < partner(i).
Tensor tangent(const Tensor &own, const Tensor &other, const Tensor &between, const Tensor &isFirst,
               const Tensor &rotates);
/// Columns rotated by the tangents [..., 1, n].
Tensor rotateColumns(const Tensor &x, const Tensor &tangents, const Tensor &partners);
/// The largest magnitude of each matrix [..., 1, 1] if squares of its elements could overflow or vanish, else 1: what
/// to divide by before.
Tensor scaleOf(const Tensor &a);

} // namespace burin::linalg
