// Cholesky factorisation.
#include "burin/graph/control.h"
#include "frontend/tensor/linalg/Linalg.h"

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

/// L, column by column from the columns before it, and whether the square of a diagonal element was not positive.
static std::vector<Tensor> columnByColumn(const Tensor &a) {
  const Dim n = rowsOf(a);
  const Shape batch = batchOf(a);
  Tensor bad = broadcast_to(Tensor(false), matrices(batch, n, 1));
  if (isEmpty(n))
    return {a, bad};
  Tensor row = rowIndices(n), column = columnIndices(n);
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    const Tensor &l = states[0], &at = elements[0]; // columns of l that are not known are 0
    Tensor rest = columnAt(a, at) - matmul(l, rowAt(l, at).t()), square = rowAt(rest, at);
    Tensor found = where(row >= at, rest / sqrt(square), 0.0);
    return ScanResult{{where(column == at, found, l), where(row == at, !(square > 0.0), states[1])}, {}};
  };
  ScanResult done = scan(step, {zeros_like(a), bad}, {iota({n}, DType::i64)});
  return done.states;
}

static std::vector<Tensor> factor(const Tensor &a) {
  auto f = [](const std::vector<Tensor> &in) { return columnByColumn(in[0]); };
  auto vjp = [](const std::vector<Tensor> &, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    const Tensor across = made[0].t();
    Tensor inner = tril(matmul(across, tril(g[0])));
    Tensor symmetric = 0.5 * (inner + tril(inner, -1).t());
    Tensor half = solveTriangle(across, symmetric, true);              // L⁻ᵀ S
    return std::vector<Tensor>{solveTriangle(across, half.t(), true)}; // L⁻ᵀ S L⁻¹, symmetric
  };
  return custom_vjp(f, vjp)({a});
}

static std::vector<Tensor> checkedFactor(const Tensor &A, bool upper, const Call &call) {
  Tensor a = call.square(A);
  std::vector<Tensor> made = factor(upper ? a.t() : a);
  if (upper)
    made[0] = made[0].t();
  return made;
}

Tensor cholesky(const Tensor &A, bool upper, Location where) {
  const Call call("cholesky", where);
  std::vector<Tensor> made = checkedFactor(A, upper, call);
  Tensor isGood = !any(made[1], {-2, -1}, true);
  return check(isGood, made[0], "cholesky: a matrix is not positive definite; cholesky_ex reports this in info",
               call.place)
      .to(A.dtype());
}
CheckedResult cholesky_ex(const Tensor &A, bool upper, Location where) {
  const Call call("cholesky_ex", where);
  std::vector<Tensor> made = checkedFactor(A, upper, call);
  return {made[0].to(A.dtype()), firstBad(made[1])};
}

Tensor cholesky_solve(const Tensor &B, const Tensor &L, bool upper, Location where) {
  const Call call("cholesky_solve", where);
  Tensor l = call.square(L), b = call.operand(B);
  if (rowsOf(b) != rowsOf(l))
    call.fail("the factor is " + str(L.spec()) + ", so B must have " + rowsOf(l).str() + " rows, but is " +
              str(B.spec()));
  commonBatch(l, b, call);
  l = upper ? triu(l).t() : tril(l);
  return solveTriangle(l.t(), solveTriangle(l, b, false), true).to(B.dtype());
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
