// QR factorisation and least squares.
#include "frontend/tensor/linalg/Linalg.h"

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

/// The reflection I - tau v vᵀ that makes elements of a column [..., m, 1] below row `at` zero.
static std::pair<Tensor, Tensor> reflection(const Tensor &column, const Tensor &row, const Tensor &at) {
  Tensor head = rowAt(column, at), below = where(row > at, column, 0.0);
  Tensor largest = reduce_max(abs(below), {-2}, true);
  largest = detach(where(largest > 0.0, largest, 1.0));
  Tensor scaled = below / largest, squares = reduce_sum(scaled * scaled, {-2}, true);
  Tensor isZero = squares == 0.0; // the column needs no reflection
  Tensor ofHead = head / largest, length = largest * sqrt(where(isZero, 1.0, ofHead * ofHead + squares));
  Tensor beta = where(head < 0.0, length, -length);
  Tensor v = where(row == at, 1.0, below / where(isZero, 1.0, head - beta));
  return {v, where(isZero, 0.0, (beta - head) / beta)};
}

QrResult householder(const Tensor &a, const std::optional<Dim> &columns) {
  const Dim m = rowsOf(a), n = columnsOf(a), k = min(m, n);
  if (isEmpty(k))
    return {columns ? identity(batchOf(a), m, *columns, a.dtype()) : Tensor(), a};
  Tensor row = rowIndices(m), rounds = iota({k}, DType::i64);
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    const Tensor &r = states[0];
    auto [v, tau] = reflection(columnAt(r, elements[0]), row, elements[0]);
    return ScanResult{{r - tau * v * matmul(v.t(), r)}, {v, tau}};
  };
  ScanResult done = scan(step, {a}, {rounds});
  Tensor r = triu(done.states[0]);
  if (!columns)
    return {Tensor(), r};
  auto apply = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    const Tensor &q = states[0], &v = elements[0];
    return ScanResult{{q - elements[1] * v * matmul(v.t(), q)}, {}};
  };
  Tensor one = identity(batchOf(a), m, *columns, a.dtype());
  return {scan(apply, {one}, done.outputs, true).states[0], r};
}

/// The gradient of A [..., m, n], m >= n, from those of Q and R.
static Tensor ofTall(const Tensor &q, const Tensor &r, const Tensor &ofQ, const Tensor &ofR) {
  Tensor inner = matmul(r, triu(ofR).t()) - matmul(ofQ.t(), q);
  Tensor symmetric = tril(inner) + tril(inner, -1).t();
  Tensor sum = ofQ + matmul(q, symmetric); // times R⁻ᵀ
  return solveTriangle(r, sum.t(), true).t();
}

static QrResult reduced(const Tensor &a) {
  const Dim m = rowsOf(a), n = columnsOf(a), k = min(m, n);
  auto f = [=](const std::vector<Tensor> &in) {
    QrResult made = householder(in[0], k);
    return std::vector<Tensor>{made.Q, firstRows(made.R, k)};
  };
  auto vjp = [=](const std::vector<Tensor> &in, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    const Tensor &q = made[0], &r = made[1];
    if (isAtMost(n, m))
      return std::vector<Tensor>{ofTall(q, r, g[0], g[1])};
    // A = [X Y], R = [U V]: X = Q U, V = Qᵀ Y.
    const int64_t axis = r.rank() - 1;
    Tensor ofV = g[1].slice(axis, m), y = in[0].slice(axis, m);
    Tensor ofX = ofTall(q, firstColumns(r, m), g[0] + matmul(y, ofV.t()), firstColumns(g[1], m));
    return std::vector<Tensor>{concat({ofX, matmul(q, ofV)}, axis)};
  };
  const bool isKnown = isAtMost(n, m) || isAtMost(m, n);
  std::vector<Tensor> made = isKnown ? custom_vjp(f, vjp)({a}) : f({a});
  return {made[0], made[1]};
}

QrResult qr(const Tensor &A, const std::string &mode, Location where) {
  const Call call("qr", where);
  Tensor a = call.operand(A);
  QrResult made;
  if (mode == "reduced")
    made = reduced(a);
  else if (mode == "complete")
    made = householder(a, rowsOf(a));
  else if (mode == "r")
    made = {zeros({0}, a.dtype()), firstRows(householder(a, std::nullopt).R, min(rowsOf(a), columnsOf(a)))};
  else
    call.fail("the mode \"" + mode + "\" must be reduced, complete or r");
  return {made.Q.to(A.dtype()), made.R.to(A.dtype())};
}

LstsqResult lstsq(const Tensor &A, const Tensor &B, Location where) {
  const Call call("lstsq", where);
  Tensor a = call.operand(A), b = call.operand(B);
  const Dim m = rowsOf(a), n = columnsOf(a);
  if (A.dtype() != B.dtype())
    call.fail("the operands " + str(A.spec()) + " and " + str(B.spec()) + " must have one element type");
  if (rowsOf(b) != m)
    call.fail("A is " + str(A.spec()) + ", so B must have " + m.str() + " rows, but is " + str(B.spec()));
  commonBatch(a, b, call);
  if (isAtMost(n, m)) {
    QrResult f = reduced(a);
    Tensor x = solveTriangle(f.R, matmul(f.Q.t(), b), true), rest = b - matmul(a, x);
    Tensor residuals = m == n ? zeros({0}, a.dtype()) : reduce_sum(rest * rest, {-2});
    return {x.to(A.dtype()), residuals.to(A.dtype())};
  }
  if (!isAtMost(m, n))
    call.fail("it is not known whether " + m.str() + " rows are more than " + n.str() +
              " columns; give the symbols ranges");
  QrResult f = reduced(a.t());
  return {matmul(f.Q, solveTriangle(f.R.t(), b, false)).to(A.dtype()), zeros({0}, A.dtype())};
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
