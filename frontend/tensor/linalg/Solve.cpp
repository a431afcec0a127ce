// Linear equations, by triangular factors.
#include "burin/graph/control.h"
#include "frontend/tensor/linalg/Linalg.h"
#include "ir/infer/Infer.h"

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

// ---- triangular matrices

/// Forward (or backward) substitution; a and b have one batch.
static Tensor substitute(const Tensor &a, const Tensor &b, bool upper, bool unit) {
  const Dim n = rowsOf(a);
  if (isEmpty(n) || isEmpty(columnsOf(b)))
    return b;
  Tensor row = rowIndices(n);
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    const Tensor &x = states[0], &at = elements[0]; // rows of x that are not known are 0
    Tensor own = rowAt(a, at), solved = rowAt(b, at) - matmul(own, x);
    return ScanResult{{where(row == at, unit ? solved : solved / columnAt(own, at), x)}, {}};
  };
  return scan(step, {zeros_like(b)}, {iota({n}, DType::i64)}, upper).states[0];
}

/// The sum over the batches that x was broadcast along.
static Tensor sumTo(const Tensor &g, const Tensor &x) {
  Tensor sum = g;
  while (sum.rank() > x.rank())
    sum = reduce_sum(sum, {0});
  for (int64_t i = 0; i < x.rank(); ++i)
    if (x.shape()[size_t(i)] == Dim(1) && sum.shape()[size_t(i)] != Dim(1))
      sum = reduce_sum(sum, {i}, true);
  return sum;
}

Tensor solveTriangle(const Tensor &a, const Tensor &b, bool upper, bool unit) {
  auto f = [=](const std::vector<Tensor> &in) { return std::vector<Tensor>{substitute(in[0], in[1], upper, unit)}; };
  auto vjp = [=](const std::vector<Tensor> &in, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    Tensor ofB = solveTriangle(in[0].t(), g[0], !upper, unit), whole = -matmul(ofB, made[0].t());
    return std::vector<Tensor>{upper ? triu(whole, unit ? 1 : 0) : tril(whole, unit ? -1 : 0), ofB};
  };
  auto batch = ir::broadcastShapes(batchOf(a), batchOf(b));
  return custom_vjp(f, vjp)({broadcast_to(a, matrices(*batch, rowsOf(a), columnsOf(a))),
                             broadcast_to(b, matrices(*batch, rowsOf(b), columnsOf(b)))})[0];
}

/// Throws unless A · X can be B.
static void requireRows(const Tensor &a, const Tensor &b, const Call &call) {
  if (rowsOf(b) != columnsOf(a))
    call.fail("A is " + str(a.spec()) + ", so B must have " + columnsOf(a).str() + " rows, but is " + str(b.spec()));
  commonBatch(a, b, call);
}
static DType commonType(const Tensor &a, const Tensor &b, const Call &call) {
  if (a.dtype() != b.dtype())
    call.fail("the operands " + str(a.spec()) + " and " + str(b.spec()) + " must have one element type");
  return a.dtype();
}

Tensor solve_triangular(const Tensor &A, const Tensor &B, bool upper, bool left, bool unitriangular, Location where) {
  const Call call("solve_triangular", where);
  Tensor a = call.square(A), b = call.operand(B);
  const DType dtype = commonType(A, B, call);
  a = upper ? triu(a, unitriangular ? 1 : 0) : tril(a, unitriangular ? -1 : 0);
  if (!left) {
    if (columnsOf(b) != rowsOf(a))
      call.fail("A is " + str(A.spec()) + ", so B must have " + rowsOf(a).str() + " columns, but is " + str(B.spec()));
    commonBatch(a, b, call);
    return solveTriangle(a.t(), b.t(), !upper, unitriangular).t().to(dtype);
  }
  requireRows(a, b, call);
  return solveTriangle(a, b, upper, unitriangular).to(dtype);
}

// ---- general matrices

Tensor solveFactored(const Lu &lu, const Tensor &b) {
  auto batch = *ir::broadcastShapes(batchOf(lu.packed), batchOf(b));
  const Shape shape = matrices(batch, rowsOf(b), columnsOf(b));
  Tensor moved = gather(broadcast_to(b, shape), broadcast_to(lu.permutation, shape), int64_t(batch.size()));
  Tensor half = solveTriangle(tril(lu.packed, -1), moved, false, true);
  return solveTriangle(triu(lu.packed), half, true);
}

/// X with A · X = B, and whether diagonal elements of U are 0.
static std::pair<Tensor, Tensor> solved(const Tensor &a, const Tensor &b) {
  auto f = [](const std::vector<Tensor> &in) {
    Lu lu = factorize(in[0]);
    return std::vector<Tensor>{solveFactored(lu, in[1]), diagonalColumn(lu.packed) == 0.0};
  };
  auto vjp = [](const std::vector<Tensor> &in, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    Tensor ofB = solved(in[0].t(), g[0]).first;
    return std::vector<Tensor>{sumTo(-matmul(ofB, made[0].t()), in[0]), sumTo(ofB, in[1])};
  };
  std::vector<Tensor> made = custom_vjp(f, vjp)({a, b});
  return {made[0], made[1]};
}

static std::pair<Tensor, Tensor> inverted(const Tensor &a) {
  auto f = [](const std::vector<Tensor> &in) {
    Lu lu = factorize(in[0]);
    Tensor one = identity(batchOf(in[0]), rowsOf(in[0]), rowsOf(in[0]), in[0].dtype());
    return std::vector<Tensor>{solveFactored(lu, one), diagonalColumn(lu.packed) == 0.0};
  };
  auto vjp = [](const std::vector<Tensor> &, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    Tensor across = made[0].t();
    return std::vector<Tensor>{-matmul(across, matmul(g[0], across))};
  };
  std::vector<Tensor> made = custom_vjp(f, vjp)({a});
  return {made[0], made[1]};
}

Tensor inverse(const Tensor &a) { return inverted(a).first; }

/// Makes reading the result an error for a singular matrix.
static Tensor unlessSingular(const Tensor &x, const Tensor &isZero, const std::string &name, const Call &call) {
  Tensor isGood = !any(isZero, {-2, -1}, true);
  return burin::check(isGood, x, name + ": a matrix is singular: a pivot is 0; " + name + "_ex reports this in info",
                      call.place);
}

/// B as matrices, and whether it was a vector per matrix of A.
static std::pair<Tensor, bool> rightSide(const Tensor &A, const Tensor &B, const Call &call) {
  commonType(A, B, call);
  Tensor a = call.square(A), b = call.operand(B, 1);
  const bool isVector =
      b.rank() == 1 || (b.rank() + 1 == a.rank() && b.shape() == Shape(a.shape().begin(), a.shape().end() - 1));
  if (isVector)
    b = unsqueeze(b, {-1});
  requireRows(a, b, call);
  return {b, isVector};
}

Tensor solve(const Tensor &A, const Tensor &B, Location where) {
  const Call call("solve", where);
  auto [b, isVector] = rightSide(A, B, call);
  auto [x, isZero] = solved(call.square(A), b);
  x = unlessSingular(x, isZero, "solve", call).to(A.dtype());
  return isVector ? squeeze(x, {-1}) : x;
}
CheckedResult solve_ex(const Tensor &A, const Tensor &B, Location where) {
  const Call call("solve_ex", where);
  auto [b, isVector] = rightSide(A, B, call);
  auto [x, isZero] = solved(call.square(A), b);
  x = x.to(A.dtype());
  return {isVector ? squeeze(x, {-1}) : x, firstBad(isZero)};
}

Tensor inv(const Tensor &A, Location where) {
  const Call call("inv", where);
  auto [x, isZero] = inverted(call.square(A));
  return unlessSingular(x, isZero, "inv", call).to(A.dtype());
}
CheckedResult inv_ex(const Tensor &A, Location where) {
  const Call call("inv_ex", where);
  auto [x, isZero] = inverted(call.square(A));
  return {x.to(A.dtype()), firstBad(isZero)};
}

/// The order of rows after swapping each row i with row pivots[i]: [..., n, 1].
static Tensor permutationOf(const Tensor &pivots, const Dim &n) {
  const Dim count = pivots.shape().back();
  const Shape batch(pivots.shape().begin(), pivots.shape().end() - 1);
  Tensor row = rowIndices(n), order = broadcast_to(row, matrices(batch, n, 1));
  if (isEmpty(count))
    return order;
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    const Tensor &old = states[0], &at = elements[1];
    Tensor isOther = row == unsqueeze(elements[0], {-2, -1});
    Tensor other = reduce_sum(where(isOther, old, 0), {-2}, true);
    return ScanResult{{where(row == at, other, where(isOther, rowAt(old, at), old))}, {}};
  };
  return scan(step, {order}, {movedim(pivots, -1, 0), iota({count}, DType::i64)}).states[0];
}

Tensor lu_solve(const Tensor &LU, const Tensor &pivots, const Tensor &B, Location where) {
  const Call call("lu_solve", where);
  const DType dtype = commonType(LU, B, call);
  Tensor packed = call.square(LU), b = call.operand(B);
  requireRows(packed, b, call);
  if (!isInteger(pivots.dtype()) || pivots.shape() != Shape(packed.shape().begin(), packed.shape().end() - 1))
    call.fail("pivots are those of lu_factor, one integer per row of " + str(LU.spec()) + ", not " +
              str(pivots.spec()));
  return solveFactored({packed, {}, permutationOf(pivots.to(DType::i64) - 1, rowsOf(packed)), {}}, b).to(dtype);
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
