// Jacobi rotations of many pairs at a time, and eigenvalues of symmetric matrices by them.
//
// In each step every row and column is rotated with one other one. A round-robin tournament of n players gives the
// pairs (Brent, Luk 1985), so that n steps, a sweep, rotate each pair.
#include "burin/graph/control.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/tensor/linalg/Linalg.h"

// NOLINTBEGIN(readability-identifier-naming): parameters have the names of torch.linalg.
namespace burin::linalg {

using namespace detail;

Tensor partners(const Dim &n, const Tensor &round) {
  // Players i and j < odd meet if i + j = round (mod odd). With an even n the one who would meet itself meets n - 1.
  Tensor player = iota({n}, DType::i64), size = sizeTensor(n), odd = size - 1 + size % 2;
  Tensor other = (round - player) % odd, last = (round * floor_divide(odd + 1, 2)) % odd;
  Tensor ofEarly = where(other == player, where(odd < size, odd, player), other);
  return where(player < odd, ofEarly, last);
}

Tensor tangent(const Tensor &own, const Tensor &other, const Tensor &between, const Tensor &isFirst,
               const Tensor &rotates) {
  Tensor ratio = (other - own) / (2.0 * where(rotates, between, 1.0));
  Tensor sign = where(ratio == 0.0, where(isFirst, 1.0, -1.0).to(own.dtype()), burin::sign(ratio));
  return where(rotates, sign / (abs(ratio) + sqrt(1.0 + ratio * ratio)), 0.0);
}

Tensor rotateColumns(const Tensor &x, const Tensor &tangents, const Tensor &partners) {
  return rsqrt(1.0 + tangents * tangents) * (x - tangents * take(x, partners, x.rank() - 1));
}

namespace {

constexpr int64_t kMostSweeps = 60; // usually 5 to 10 are needed

/// One step in a symmetric matrix a; v collects the rotations, if defined.
std::vector<Tensor> rotateOnce(const Tensor &a, const Tensor &v, const Tensor &round) {
  const Dim n = rowsOf(a);
  Tensor row = rowIndices(n), column = columnIndices(n), other = partners(n, round);
  Tensor asRow = unsqueeze(other, {0}), isPair = (unsqueeze(other, {1}) == column) & (row != column);
  Tensor own = reduce_sum(where(row == column, a, 0.0), {-2}, true); // [..., 1, n]
  Tensor between = reduce_sum(where(isPair, a, 0.0), {-2}, true);
  Tensor t = tangent(own, take(own, other, -1), between, column < asRow, between != 0.0);
  Tensor rotated = rotateColumns(rotateColumns(a.t(), t, other).t(), t, other);
  std::vector<Tensor> next{where(isPair, 0.0, rotated)};
  if (v.defined())
    next.push_back(rotateColumns(v, t, other));
  return next;
}

/// Eigenvalues [..., n], not sorted, and with `vectors` eigenvectors of a symmetric matrix.
std::vector<Tensor> diagonalize(const Tensor &given, bool vectors) {
  const Dim n = rowsOf(given);
  Tensor scale = scaleOf(given), a = given / scale;
  auto sumOfSquares = [](const Tensor &x) { return reduce_sum(x * x, {-2, -1}); };
  Tensor limit = sumOfSquares(a) * (epsilonOf(a.dtype()) * epsilonOf(a.dtype()));
  Tensor isDiagonal = rowIndices(n) == columnIndices(n);
  auto goesOn = [&](const std::vector<Tensor> &values) {
    Tensor rest = sumOfSquares(where(isDiagonal, 0.0, values[0]));
    return any(rest > limit) & (values.back() < kMostSweeps);
  };
  auto sweep = [&](const std::vector<Tensor> &values) {
    auto round = [&](const Tensor &i, const std::vector<Tensor> &states) {
      return rotateOnce(states[0], vectors ? states[1] : Tensor(), i);
    };
    std::vector<Tensor> states(values.begin(), values.end() - 1);
    states = fori_loop(0, n, round, states);
    states.push_back(values.back() + 1);
    return states;
  };
  std::vector<Tensor> initial{a};
  if (vectors)
    initial.push_back(identity(batchOf(a), n, n, a.dtype()));
  initial.push_back(Tensor(0).to(DType::i64));
  std::vector<Tensor> found = while_loop(goesOn, sweep, initial);
  found[0] = squeeze(diagonalColumn(found[0]) * scale, {-1});
  found.pop_back();
  return found;
}

std::vector<Tensor> sorted(const Tensor &a, bool vectors) {
  if (isEmpty(rowsOf(a))) {
    Tensor none = zeros(Shape(a.shape().begin(), a.shape().end() - 1), a.dtype());
    return vectors ? std::vector<Tensor>{none, a} : std::vector<Tensor>{none};
  }
  std::vector<Tensor> found = diagonalize(a, vectors);
  Tensor order = argsort(found[0], -1);
  std::vector<Tensor> result{gather(found[0], order, order.rank() - 1)};
  if (vectors)
    result.push_back(gather(found[1], broadcast_to(unsqueeze(order, {-2}), a.shape()), a.rank() - 1));
  return result;
}

/// The symmetric matrix with the triangle `uplo` of A.
Tensor symmetricOperand(const Tensor &A, const std::string &uplo, const Call &call) {
  Tensor a = call.square(A);
  if (uplo != "L" && uplo != "U")
    call.fail("UPLO is \"" + uplo + "\", but must be L or U");
  Tensor triangle = uplo == "L" ? tril(a) : triu(a).t();
  return triangle + tril(triangle, -1).t();
}

/// The gradient of a symmetric matrix; either one may be undefined.
Tensor gradientOf(const Tensor &values, const Tensor &vectors, const Tensor &ofValues, const Tensor &ofVectors) {
  Tensor isDiagonal = rowIndices(rowsOf(vectors)) == columnIndices(rowsOf(vectors));
  Tensor inner = where(isDiagonal, unsqueeze(ofValues, {-2}), 0.0);
  if (ofVectors.defined()) {
    Tensor gaps = where(isDiagonal, 1.0, unsqueeze(values, {-2}) - unsqueeze(values, {-1}));
    inner = inner + where(isDiagonal, 0.0, matmul(vectors.t(), ofVectors) / gaps);
  }
  Tensor whole = matmul(matmul(vectors, inner), vectors.t());
  return 0.5 * (whole + whole.t());
}

} // namespace

EighResult eigh(const Tensor &A, const std::string &UPLO, Location where) {
  const Call call("eigh", where);
  auto f = [](const std::vector<Tensor> &in) { return sorted(in[0], true); };
  auto vjp = [](const std::vector<Tensor> &, const std::vector<Tensor> &made, const std::vector<Tensor> &g) {
    return std::vector<Tensor>{gradientOf(made[0], made[1], g[0], g[1])};
  };
  std::vector<Tensor> made = custom_vjp(f, vjp)({symmetricOperand(A, UPLO, call)});
  return {made[0].to(A.dtype()), made[1].to(A.dtype())};
}

Tensor eigvalsh(const Tensor &A, const std::string &UPLO, Location where) {
  const Call call("eigvalsh", where);
  auto f = [](const std::vector<Tensor> &in) { return sorted(in[0], false); };
  auto vjp = [](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
    EighResult whole = eigh(in[0]);
    return std::vector<Tensor>{gradientOf(whole.eigenvalues, whole.eigenvectors, g[0], Tensor())};
  };
  return custom_vjp(f, vjp)({symmetricOperand(A, UPLO, call)})[0].to(A.dtype());
}

} // namespace burin::linalg
// NOLINTEND(readability-identifier-naming)
