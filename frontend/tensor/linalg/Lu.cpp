// LU factorisation with partial pivoting, and determinants.
#include "frontend/tensor/linalg/Linalg.h"

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

/// Eliminates column after column, in every step in the whole matrix. Returns the fields of Lu.
static std::vector<Tensor> eliminate(const Tensor &a) {
  const Dim m = rowsOf(a), n = columnsOf(a), k = min(m, n);
  const Shape batch = batchOf(a);
  Tensor row = rowIndices(m), column = columnIndices(n);
  Tensor order = broadcast_to(row, matrices(batch, m, 1));
  Tensor sign = ones(matrices(batch, 1, 1), a.dtype());
  if (isEmpty(k)) {
    Shape none = batch;
    none.push_back(0);
    return {a, zeros(none, DType::i64), order, sign};
  }
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    const Tensor &x = states[0], &at = elements[0];
    Tensor isHere = row == at, sizes = where(row >= at, abs(columnAt(x, at)), -1.0);
    Tensor best = argmax(sizes, -2, true), isBest = row == best; // [..., 1, 1]
    auto swapped = [&](const Tensor &y, const Tensor &bestRow) {
      return where(isHere, bestRow, where(isBest, rowAt(y, at), y));
    };
    auto rowOfBest = [&](const Tensor &y, const Tensor &zero) {
      return reduce_sum(where(isBest, y, zero), {-2}, true);
    };
    Tensor pivotRow = rowOfBest(x, 0.0), pivot = columnAt(pivotRow, at), y = swapped(x, pivotRow);
    Tensor factor = columnAt(y, at) / where(pivot == 0.0, 1.0, pivot);
    Tensor below = where(column > at, y - factor * pivotRow, where(column == at, factor, y));
    return ScanResult{{where(row > at, below, y), swapped(states[1], rowOfBest(states[1], 0)),
                       where(best == at, states[2], -states[2])},
                      {squeeze(best, {-2, -1})}};
  };
  ScanResult done = scan(step, {a, order, sign}, {iota({k}, DType::i64)});
  return {done.states[0], movedim(done.outputs[0], 0, -1), done.states[1], done.states[2]};
}

/// Rows of y moved to the positions `order` [..., m, 1].
static Tensor rowsTo(const Tensor &y, const Tensor &order) {
  return gather(y, broadcast_to(argsort(order, -2), y.shape()), y.rank() - 2);
}

Lu factorize(const Tensor &a) {
  auto vjp = [](const std::vector<Tensor> &, const std::vector<Tensor> &made, const std::vector<Tensor> &gradients) {
    const Tensor &packed = made[0], &g = gradients[0];
    Tensor lower = tril(packed, -1) + identity({}, rowsOf(g), rowsOf(g), g.dtype()), upper = triu(packed);
    Tensor inner = tril(matmul(lower.t(), tril(g, -1)), -1) + triu(matmul(triu(g), upper.t()));
    Tensor left = solveTriangle(lower.t(), inner, true, true);
    return std::vector<Tensor>{rowsTo(solveTriangle(upper, left.t(), true).t(), made[2])};
  };
  const bool isSquare = rowsOf(a) == columnsOf(a);
  auto f = [](const std::vector<Tensor> &in) { return eliminate(in[0]); };
  std::vector<Tensor> made = isSquare ? custom_vjp(f, vjp)({a}) : f({a});
  return {made[0], made[1], made[2], made[3]};
}

LuFactors lu_factor(const Tensor &A, Location where) {
  const Call call("lu_factor", where);
  Lu lu = factorize(call.operand(A));
  return {lu.packed.to(A.dtype()), (lu.pivots + 1).to(DType::i32)};
}

LuResult lu(const Tensor &A, Location where) {
  const Call call("lu", where);
  Tensor a = call.operand(A);
  Lu lu = factorize(a);
  const Dim m = rowsOf(a), n = columnsOf(a), k = min(m, n);
  Tensor lower = tril(firstColumns(lu.packed, k), -1) + identity({}, m, k, a.dtype());
  Tensor p = (rowIndices(m) == lu.permutation.t()).to(A.dtype());
  return {p, lower.to(A.dtype()), triu(firstRows(lu.packed, k)).to(A.dtype())};
}

// ---- determinants

static Tensor scalarOf(const Tensor &x) { return squeeze(x, {-2, -1}); }
static Tensor perMatrix(const Tensor &x) { return unsqueeze(x, {-2, -1}); }

Tensor det(const Tensor &A, Location where) {
  const Call call("det", where);
  auto value = [](const Lu &lu, const Tensor &diagonal) { return reduce_prod(diagonal, {-2}, true) * lu.sign; };
  auto f = [&](const std::vector<Tensor> &in) {
    Lu lu = factorize(in[0]);
    return std::vector<Tensor>{scalarOf(value(lu, diagonalColumn(lu.packed)))};
  };
  // d det(A) = det(A) tr(A⁻¹ dA). Without zeros on the diagonal of U the product is finite.
  auto vjp = [value](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
    const Tensor &a = in[0];
    Lu lu = factorize(a);
    Tensor diagonal = diagonalColumn(lu.packed);
    if (!isEmpty(rowsOf(a))) {
      Tensor tiny = detach(epsilonOf(a.dtype()) * maximum(reduce_max(abs(lu.packed), {-2, -1}, true), 1e-30));
      Tensor added = burin::where(diagonal == 0.0, tiny, zeros_like(diagonal));
      lu.packed = lu.packed + added * identity({}, rowsOf(a), rowsOf(a), a.dtype());
      diagonal = diagonal + added;
    }
    Tensor inverse = solveFactored(lu, identity(batchOf(a), rowsOf(a), rowsOf(a), a.dtype()));
    return std::vector<Tensor>{perMatrix(g[0]) * value(lu, diagonal) * inverse.t()};
  };
  return custom_vjp(f, vjp)({call.square(A)})[0].to(A.dtype());
}

SlogdetResult slogdet(const Tensor &A, Location where) {
  const Call call("slogdet", where);
  auto f = [](const std::vector<Tensor> &in) {
    Lu lu = factorize(in[0]);
    Tensor diagonal = diagonalColumn(lu.packed);
    return std::vector<Tensor>{scalarOf(reduce_prod(sign(diagonal), {-2}, true) * lu.sign),
                               scalarOf(reduce_sum(log(abs(diagonal)), {-2}, true))};
  };
  auto vjp = [](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
    return std::vector<Tensor>{perMatrix(g[1]) * inverse(in[0]).t()};
  };
  std::vector<Tensor> made = custom_vjp(f, vjp)({call.square(A)});
  return {made[0].to(A.dtype()), made[1].to(A.dtype())};
}

Tensor logdet(const Tensor &A, Location where) {
  const Call call("logdet", where);
  const SlogdetResult parts = slogdet(A);
  return burin::where(parts.sign < 0, NAN, parts.logabsdet);
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
