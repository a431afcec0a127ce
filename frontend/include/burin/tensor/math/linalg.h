// Linear algebra, with the names, results and defaults of torch.linalg.
//
// Matrices are the last two dimensions; all others are a batch, and may be symbolic, as may the sizes of the matrices.
// Elements are f32 or f64; f16 and bf16 are computed in f32 and rounded at the end. Complex numbers do not exist.
// Matrices of size 0 and empty batches are allowed. NaN in an operand makes the results of its matrix NaN, unless a
// function says otherwise.
//
// Factorisations are loops of one step per row or column (scan, while_loop) over the whole batch: n³ work for one
// matrix, in n launches of kernels. All results that are floats have gradients, by closed formulas, which can be
// differentiated again; functions whose comment names no source differentiate the functions that they call.
#pragma once
#include "burin/tensor.h"
#include <string>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): parameters and members have the names of torch.linalg.
namespace burin::linalg {

// ---- triangular factors and linear equations

/// The packed factors of lu_factor, and the row (from 1, i32) that each row was swapped with in order.
struct LuFactors {
  Tensor LU, pivots;
};
/// Factors of A = P · L · U.
struct LuResult {
  Tensor P, L, U;
};
/// sign · exp(logabsdet) is the determinant.
struct SlogdetResult {
  Tensor sign, logabsdet;
};
/// A result and, for each matrix, 0 or the position (from 1, i32) of the first pivot for which it does not exist.
struct CheckedResult {
  Tensor result, info;
};

/// LU factorisation with partial pivoting of [..., m, n] in the form of LAPACK's getrf: U on and above the diagonal, L
/// (with ones on its diagonal) below it. A singular matrix has a zero on the diagonal of U. As torch.linalg.lu_factor.
/// Gradient of square matrices: de Hoog, Anderssen, Lukas 2011; of others that of the loop.
BURIN_API LuFactors lu_factor(const Tensor &A, Location where = Location::current());
/// The factors of lu_factor as matrices: P [..., m, m], L [..., m, k], U [..., k, n] with k = min(m, n). As
/// torch.linalg.lu.
BURIN_API LuResult lu(const Tensor &A, Location where = Location::current());
/// X with A · X = B from the factors of square A; B [..., n, k]. As torch.linalg.lu_solve.
BURIN_API Tensor lu_solve(const Tensor &LU, const Tensor &pivots, const Tensor &B,
                          Location where = Location::current());
/// The determinant, by lu_factor; 0 for singular matrices, 1 for those of size 0. As torch.linalg.det. Gradient:
/// Jacobi's formula; at singular matrices zeros on the diagonal of U are replaced by tiny numbers.
BURIN_API Tensor det(const Tensor &A, Location where = Location::current());
/// Sign (0 for singular matrices) and logarithm of the determinant's magnitude. As torch.linalg.slogdet.
BURIN_API SlogdetResult slogdet(const Tensor &A, Location where = Location::current());
/// The logarithm of the determinant: -inf for 0, NaN if it is negative. As torch.logdet.
BURIN_API Tensor logdet(const Tensor &A, Location where = Location::current());
/// X with A · X = B for square A [..., n, n]; B [..., n, k], or [..., n] if it has the shape of A without its last
/// dimension or is a vector. Batches broadcast. A singular matrix is an error, in a traced function of the run;
/// solve_ex reports it instead. As torch.linalg.solve, solve_ex. Gradient: Giles 2008.
BURIN_API Tensor solve(const Tensor &A, const Tensor &B, Location where = Location::current());
BURIN_API CheckedResult solve_ex(const Tensor &A, const Tensor &B, Location where = Location::current());
/// The inverse. A singular matrix is an error, in a traced function of the run; inv_ex reports it instead. As
/// torch.linalg.inv, inv_ex. Gradient: Giles 2008.
BURIN_API Tensor inv(const Tensor &A, Location where = Location::current());
BURIN_API CheckedResult inv_ex(const Tensor &A, Location where = Location::current());
/// X with A · X = B, or X · A = B without `left`, for a triangular matrix A; elements on the other side of the diagonal
/// are not read, with `unitriangular` nor is the diagonal, which is 1. Batches broadcast. A zero on the diagonal gives
/// infinities and NaN. As torch.linalg.solve_triangular.
BURIN_API Tensor solve_triangular(const Tensor &A, const Tensor &B, bool upper, bool left = true,
                                  bool unitriangular = false, Location where = Location::current());
/// The lower triangular L with A = L · Lᵀ, or with `upper` its transpose, for a symmetric positive definite matrix, of
/// which the lower triangle (with `upper` the upper one) is read. Another matrix is an error, in a traced function of
/// the run; cholesky_ex reports it instead. As torch.linalg.cholesky, cholesky_ex. Gradient: Murray 2016.
BURIN_API Tensor cholesky(const Tensor &A, bool upper = false, Location where = Location::current());
BURIN_API CheckedResult cholesky_ex(const Tensor &A, bool upper = false, Location where = Location::current());
/// X with A · X = B from the factor L of A = L · Lᵀ, or with `upper` from its transpose. As torch.cholesky_solve.
BURIN_API Tensor cholesky_solve(const Tensor &B, const Tensor &L, bool upper = false,
                                Location where = Location::current());

// ---- orthogonal factors

/// Factors of A = Q · R.
struct QrResult {
  Tensor Q, R;
};
/// QR factorisation of [..., m, n] by Householder reflections, with the signs of LAPACK. With "reduced" Q is [..., m,
/// k] and R [..., k, n], k = min(m, n); with "complete" they are [..., m, m] and [..., m, n]; with "r" only the reduced
/// R is computed and Q has no elements. As torch.linalg.qr. Gradient, with "reduced": Walter, Lehmann 2010; Seeger et
/// al. 2017; of the other modes that of the loop.
BURIN_API QrResult qr(const Tensor &A, const std::string &mode = "reduced", Location where = Location::current());
/// The solution of lstsq, and for m > n the squared residuals, one per column of B.
struct LstsqResult {
  Tensor solution, residuals;
};
/// X that minimises the norm of A · X - B, by QR: A [..., m, n] of full rank, B [..., m, k]. For m < n the one of least
/// norm; residuals are then of shape [0]. Throws if it is not known which size is larger. As torch.linalg.lstsq with
/// driver "gels", but without rank and singular values.
BURIN_API LstsqResult lstsq(const Tensor &A, const Tensor &B, Location where = Location::current());

/// Eigenvalues [..., n] in ascending order, and eigenvectors in the columns of [..., n, n].
struct EighResult {
  Tensor eigenvalues, eigenvectors;
};
/// Eigenvalues and eigenvectors of a symmetric matrix, of which the triangle `UPLO` ("L" or "U") is read, by cyclic
/// Jacobi rotations, n / 2 of them at a time (Brent, Luk 1985). Signs of eigenvectors, and bases of those of equal
/// eigenvalues, are arbitrary, and may differ from other libraries. As torch.linalg.eigh, eigvalsh. Gradient: Giles
/// 2008; it is infinite or NaN for eigenvectors of equal eigenvalues.
BURIN_API EighResult eigh(const Tensor &A, const std::string &UPLO = "L", Location where = Location::current());
BURIN_API Tensor eigvalsh(const Tensor &A, const std::string &UPLO = "L", Location where = Location::current());

/// Factors of A = U · diag(S) · Vh; S in descending order.
struct SvdResult {
  Tensor U, S, Vh;
};
/// Singular values and vectors of [..., m, n] by one-sided Jacobi rotations (Hestenes 1958; Brent, Luk 1985). With
/// `full_matrices` U is [..., m, m] and Vh [..., n, n], else [..., m, k] and [..., k, n] with k = min(m, n). Signs are
/// arbitrary as in eigh. As torch.linalg.svd, svdvals. Gradient: Townsend 2016, of the first k vectors; infinite or NaN
/// for vectors of equal singular values.
BURIN_API SvdResult svd(const Tensor &A, bool full_matrices = true, Location where = Location::current());
BURIN_API Tensor svdvals(const Tensor &A, Location where = Location::current());
/// The pseudoinverse [..., n, m], by svd: singular values up to max(atol, rtol · largest) count as 0. Without
/// tolerances atol is 0, and rtol max(m, n) times the distance from 1 to the next number, or 0 if atol is positive. As
/// torch.linalg.pinv. Gradient: Golub, Pereyra 1973.
BURIN_API Tensor pinv(const Tensor &A, std::optional<double> atol = std::nullopt,
                      std::optional<double> rtol = std::nullopt, Location where = Location::current());
/// The number of singular values above the tolerance of pinv: i64. As torch.linalg.matrix_rank.
BURIN_API Tensor matrix_rank(const Tensor &A, std::optional<double> atol = std::nullopt,
                             std::optional<double> rtol = std::nullopt, Location where = Location::current());

// ---- norms and products

/// The p-norm of the elements, over `axes` (default: all); see burin::norm. As torch.linalg.vector_norm.
BURIN_API Tensor vector_norm(const Tensor &x, double ord = 2, Axes axes = {}, bool keepdims = false,
                             Location where = Location::current());
/// "fro": the square root of the sum of squares; "nuc": the sum of singular values. As torch.linalg.matrix_norm.
BURIN_API Tensor matrix_norm(const Tensor &A, const std::string &ord = "fro", Axes axes = {-2, -1},
                             bool keepdims = false, Location where = Location::current());
/// 1 or infinity: the largest sum of magnitudes of a column or row; 2: the largest singular value; negative: the
/// smallest. As torch.linalg.matrix_norm.
BURIN_API Tensor matrix_norm(const Tensor &A, double ord, Axes axes = {-2, -1}, bool keepdims = false,
                             Location where = Location::current());
inline Tensor matrix_norm(const Tensor &A, const char *ord, Axes axes = {-2, -1}, bool keepdims = false,
                          Location where = Location::current()) {
  return matrix_norm(A, std::string(ord), std::move(axes), keepdims, where);
}
/// The 2-norm of all elements. As torch.linalg.norm without an order.
BURIN_API Tensor norm(const Tensor &x, Location where = Location::current());
/// vector_norm over one axis or of a vector, matrix_norm over two axes or of a matrix. As torch.linalg.norm.
BURIN_API Tensor norm(const Tensor &x, double ord, Axes axes = {}, bool keepdims = false,
                      Location where = Location::current());
/// matrix_norm over two axes, or of a matrix. As torch.linalg.norm.
BURIN_API Tensor norm(const Tensor &x, const char *ord, Axes axes = {}, bool keepdims = false,
                      Location where = Location::current());
/// The condition number: of singular values for 2 (default) and -2, else matrix_norm(A, p) · matrix_norm(inv(A), p),
/// infinite for singular matrices. As torch.linalg.cond.
BURIN_API Tensor cond(const Tensor &A, double p = 2, Location where = Location::current());
BURIN_API Tensor cond(const Tensor &A, const char *p, Location where = Location::current());
/// burin::cross, as torch.linalg.cross.
BURIN_API Tensor cross(const Tensor &x, const Tensor &y, int64_t axis = -1, Location where = Location::current());
/// The product of matrices in the order of least cost; the first and the last may be vectors. If a size is symbolic,
/// from left to right. As torch.linalg.multi_dot.
BURIN_API Tensor multi_dot(const std::vector<Tensor> &xs, Location where = Location::current());
/// The product of n equal matrices, of their inverse for negative n. As torch.linalg.matrix_power.
BURIN_API Tensor matrix_power(const Tensor &A, int64_t n, Location where = Location::current());
/// The exponential of square matrices by scaling, a Padé approximant and squaring (Higham 2005). As
/// torch.linalg.matrix_exp. Gradient: Al-Mohy, Higham 2009.
BURIN_API Tensor matrix_exp(const Tensor &A, Location where = Location::current());

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
