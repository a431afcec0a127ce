// Singular values by one-sided Jacobi rotations, and what follows from them.
#include "burin/graph/control.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/tensor/linalg/Linalg.h"

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

namespace {

constexpr int64_t kMostSweeps = 60; // usually 5 to 10 are needed

/// One step: rotates pairs of columns of a to be orthogonal. States: a, v if `vectors`, whether there was a rotation.
std::vector<Tensor> rotateOnce(const std::vector<Tensor> &states, const Tensor &round, double tolerance,
                               const Tensor &floor) {
  const Tensor &a = states[0];
  const Dim n = columnsOf(a);
  Tensor column = columnIndices(n), other = partners(n, round), asRow = unsqueeze(other, {0});
  Tensor own = reduce_sum(a * a, {-2}, true), ofOther = take(own, other, -1);
  Tensor between = reduce_sum(a * take(a, other, -1), {-2}, true);
  Tensor rotates = (abs(between) > tolerance * sqrt(own) * sqrt(ofOther) + floor) & (column != asRow);
  Tensor t = tangent(own, ofOther, between, column < asRow, rotates);
  std::vector<Tensor> next;
  for (size_t i = 0; i + 1 < states.size(); ++i)
    next.push_back(rotateColumns(states[i], t, other));
  next.push_back(states.back() | any(rotates));
  return next;
}

/// a with orthogonal columns, and with `vectors` the product of the rotations.
std::vector<Tensor> orthogonalize(const Tensor &a, bool vectors) {
  const Dim n = columnsOf(a);
  const double epsilon = epsilonOf(a.dtype());
  // Columns of that norm, relative to the matrix, are rounding errors.
  Tensor floor = reduce_sum(a * a, {-2, -1}, true) * (epsilon * epsilon);
  auto goesOn = [](const std::vector<Tensor> &values) {
    return values[values.size() - 2] & (values.back() < kMostSweeps);
  };
  auto sweep = [&](const std::vector<Tensor> &values) {
    std::vector<Tensor> states(values.begin(), values.end() - 1);
    states.back() = Tensor(false);
    auto round = [&](const Tensor &i, const std::vector<Tensor> &before) {
      return rotateOnce(before, i, 4 * epsilon, floor);
    };
    states = fori_loop(0, n, round, states);
    states.push_back(values.back() + 1);
    return states;
  };
  std::vector<Tensor> initial{a};
  if (vectors)
    initial.push_back(identity(batchOf(a), n, n, a.dtype()));
  initial.push_back(Tensor(true));
  initial.push_back(Tensor(0).to(DType::i64));
  std::vector<Tensor> found = while_loop(goesOn, sweep, initial);
  found.resize(vectors ? 2 : 1);
  return found;
}

/// Singular values of a [..., m, n] in descending order, their min(m, n) largest; with `vectors` U and V, as many
/// columns as `full` says.
std::vector<Tensor> decompose(const Tensor &given, bool vectors, bool full) {
  const Dim m = rowsOf(given), n = columnsOf(given), k = min(m, n);
  const Shape batch = batchOf(given);
  if (isEmpty(k)) {
    Shape shape = batch;
    shape.push_back(0);
    Tensor none = zeros(shape, given.dtype());
    if (!vectors)
      return {none};
    return {identity(batch, m, full ? m : 0, given.dtype()), none, identity(batch, n, full ? n : 0, given.dtype())};
  }
  Tensor scale = scaleOf(given);
  std::vector<Tensor> found = orthogonalize(given / scale, vectors);
  Tensor norms = sqrt(reduce_sum(found[0] * found[0], {-2}, true)); // [..., 1, n]
  Tensor order = argsort(norms, -1, true);
  norms = gather(norms, order, order.rank() - 1);
  std::vector<Tensor> result{squeeze(firstColumns(norms * scale, k), {-2})};
  if (!vectors)
    return result;
  auto reordered = [&](const Tensor &x) { return gather(x, broadcast_to(order, x.shape()), x.rank() - 1); };
  // Columns of norm 0 have no direction: the reflections of a QR factorisation complete the others to a basis.
  norms = firstColumns(norms, k);
  Tensor isZero = norms == 0.0, directions = firstColumns(reordered(found[0]), k) / where(isZero, 1.0, norms);
  QrResult basis = householder(directions, full ? m : k);
  Tensor signs = where(diagonalColumn(firstRows(basis.R, k)).t() < 0.0, -1.0, 1.0).to(given.dtype());
  Tensor u = basis.Q;
  if (full && m != k) // more columns have no sign
    signs = where(columnIndices(m) < sizeTensor(k), take(signs, minimum(iota({m}, DType::i64), sizeTensor(k) - 1), -1),
                  1.0);
  Tensor v = reordered(found[1]);
  return {u * signs, result[0], full ? v : firstColumns(v, k)};
}

/// The same for wide matrices by those of the transpose, which has fewer columns to rotate. U, S, V.
std::vector<Tensor> decomposed(const Tensor &a, bool vectors, bool full) {
  if (!isAtMost(rowsOf(a), columnsOf(a)) || rowsOf(a) == columnsOf(a))
    return decompose(a, vectors, full);
  std::vector<Tensor> found = decompose(a.t(), vectors, full);
  return vectors ? std::vector<Tensor>{found[2], found[1], found[0]} : found;
}

/// The gradient from those of U, S and V, of which the first min(m, n) columns count.
Tensor gradientOf(const Tensor &u, const Tensor &s, const Tensor &v, const Tensor &ofU, const Tensor &ofS,
                  const Tensor &ofV) {
  const Dim k = columnsOf(u);
  Tensor row = unsqueeze(s, {-2}), column = unsqueeze(s, {-1}), isDiagonal = rowIndices(k) == columnIndices(k);
  Tensor gaps = where(isDiagonal, 1.0, row * row - column * column);
  auto skew = [&](const Tensor &x, const Tensor &g) {
    Tensor inner = matmul(x.t(), g);
    return where(isDiagonal, 0.0, (inner - inner.t()) / gaps);
  };
  Tensor inner = skew(u, ofU) * row + column * skew(v, ofV) + where(isDiagonal, unsqueeze(ofS, {-2}), 0.0);
  Tensor whole = matmul(matmul(u, inner), v.t());
  // The part outside of the spaces of U and V.
  if (rowsOf(u) != k)
    whole = whole + matmul((ofU - matmul(u, matmul(u.t(), ofU))) / row, v.t());
  if (rowsOf(v) != k)
    whole = whole + matmul(u / row, (ofV - matmul(v, matmul(v.t(), ofV))).t());
  return whole;
}

} // namespace

SvdResult svd(const Tensor &A, bool full_matrices, Location where) {
  const Call call("svd", where);
  auto f = [=](const std::vector<Tensor> &in) { return decomposed(in[0], true, full_matrices); };
  auto vjp = [](const std::vector<Tensor> &, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    const Dim &k = made[1].shape().back();
    auto first = [&](const Tensor &x) { return firstColumns(x, k); };
    return std::vector<Tensor>{gradientOf(first(made[0]), made[1], first(made[2]), first(g[0]), g[1], first(g[2]))};
  };
  std::vector<Tensor> made = custom_vjp(f, vjp)({call.operand(A)});
  return {made[0].to(A.dtype()), made[1].to(A.dtype()), made[2].t().to(A.dtype())};
}

Tensor svdvals(const Tensor &A, Location where) {
  const Call call("svdvals", where);
  auto f = [](const std::vector<Tensor> &in) { return decomposed(in[0], false, false); };
  auto vjp = [](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
    SvdResult whole = svd(in[0], false);
    return std::vector<Tensor>{matmul(whole.U * unsqueeze(g[0], {-2}), whole.Vh)};
  };
  return custom_vjp(f, vjp)({call.operand(A)})[0].to(A.dtype());
}

/// Whether each singular value [..., k] counts as not 0.
static Tensor counts(const Tensor &s, const Tensor &a, std::optional<double> atol, std::optional<double> rtol) {
  Tensor largest = reduce_max(s, {-1}, true);
  Tensor relative = largest * rtol.value_or(0);
  if (!rtol && !(atol && *atol > 0))
    relative = largest * (sizeTensor(max(rowsOf(a), columnsOf(a))).to(s.dtype()) * epsilonOf(s.dtype()));
  return s > maximum(relative, atol.value_or(0));
}

Tensor pinv(const Tensor &A, std::optional<double> atol, std::optional<double> rtol, Location where) {
  const Call call("pinv", where);
  auto f = [=](const std::vector<Tensor> &in) {
    const Tensor &a = in[0];
    if (isEmpty(min(rowsOf(a), columnsOf(a))))
      return std::vector<Tensor>{a.t()};
    std::vector<Tensor> found = decomposed(a, true, false);
    Tensor isCounted = counts(found[1], a, atol, rtol);
    Tensor factors =
        burin::where(isCounted | is_nan(found[1]), reciprocal(burin::where(isCounted, found[1], 1.0)), 0.0);
    factors = burin::where(is_nan(found[1]), found[1], factors);
    return std::vector<Tensor>{matmul(found[2] * unsqueeze(factors, {-2}), found[0].t())};
  };
  // dX = -X dA X + X Xᵀ dAᵀ (I - A X) + (I - X A) dAᵀ Xᵀ X.
  auto vjp = [](const std::vector<Tensor> &in, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    const Tensor &a = in[0], &x = made[0];
    Tensor across = g[0].t(), left = across - matmul(a, matmul(x, across)),
           right = across - matmul(matmul(across, x), a);
    return std::vector<Tensor>{matmul(left, matmul(x, x.t())) + matmul(matmul(x.t(), x), right) -
                               matmul(x.t(), matmul(g[0], x.t()))};
  };
  return custom_vjp(f, vjp)({call.operand(A)})[0].to(A.dtype());
}

Tensor matrix_rank(const Tensor &A, std::optional<double> atol, std::optional<double> rtol, Location where) {
  const Call call("matrix_rank", where);
  Tensor a = call.operand(A);
  if (isEmpty(min(rowsOf(a), columnsOf(a))))
    return zeros(batchOf(a), DType::i64);
  return sum(counts(svdvals(a), a, atol, rtol).to(DType::i64), {-1});
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
