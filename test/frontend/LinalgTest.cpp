// Linear algebra: factorisations are checked by their defining equations; docs/from-pytorch.md compares values with
// PyTorch's.
#include "test/frontend/Check.h"
#include <cmath>

namespace {

/// Pseudorandom numbers from -1 to 1.
Tensor sample(const Shape &shape, DType dtype = f64, double seed = 0) {
  Tensor position = iota({elements(shape)}, DType::i64).to(f64) + seed;
  Tensor wave = (sin(position * 12.9898 + 78.233) * 43758.5453);
  return reshape(2 * (wave - floor(wave)) - 1, shape).to(dtype);
}
Tensor unit(const Dim &n, DType dtype = f64) { return eye(n.value()).to(dtype); }
Tensor symmetric(const Shape &shape, DType dtype = f64) {
  Tensor x = sample(shape, dtype);
  return x + x.t();
}
void checkNear(const Tensor &a, const Tensor &b, double tolerance) {
  REQUIRE(a.shape() == b.shape());
  CHECK(a.dtype() == b.dtype());
  if (elements(a.shape()) != Dim(0))
    CHECK(largestDifference(a.to(f64), b.to(f64)) <= tolerance);
}
void checkOrthonormal(const Tensor &q, double tolerance) {
  Tensor one = broadcast_to(unit(q.size(-1), q.dtype()), matmul(q.t(), q).shape());
  checkNear(matmul(q.t(), q), one, tolerance);
}

Tensor fromSvd(const Tensor &u, const Tensor &s, const Tensor &vh) {
  const Dim &k = s.shape().back();
  return matmul(u(Ellipsis, Slice(k)) * s.unsqueeze(-2), vh(Ellipsis, Slice(k), Slice()));
}

std::vector<Tensor> listOf(const Tensor &x) { return {x}; }
std::vector<Tensor> listOf(std::vector<Tensor> xs) { return xs; }

/// Runs f eagerly and traced with these symbolic sizes, and compares.
template <class F> void checkTraced(const F &f, const Tensor &x, const Shape &symbols, double tolerance = 1e-10) {
  std::vector<Tensor> eager = listOf(f(x));
  Graph graph = trace([&](const std::vector<Tensor> &in) { return listOf(f(in[0])); }, {{x.dtype(), symbols}});
  std::vector<Tensor> compiled = graph.run({x});
  REQUIRE(eager.size() == compiled.size());
  for (size_t i = 0; i < eager.size(); ++i)
    checkNear(compiled[i].to(f64), eager[i].to(f64), tolerance);
}

} // namespace

using Tensors = const std::vector<Tensor> &;

TEST_CASE("factors of matrices multiply to the matrix, for all shapes, batches and both element types") {
  const std::vector<Shape> some{{2, 5, 3}, {3, 5}}, all{{1, 1}, {2, 5, 3}, {3, 5}, {7, 1}, {0, 3, 3}, {2, 1, 8, 8}};
  for (DType dtype : {f64, f32})
    for (const Shape &shape : dtype == f64 ? all : some) {
      INFO(str(TensorSpec{dtype, shape}));
      const double tolerance = dtype == f64 ? 1e-12 : 2e-5;
      Tensor x = sample(shape, dtype);
      auto [p, l, u] = linalg::lu(x);
      checkNear(matmul(p, matmul(l, u)), x, tolerance);
      for (const char *mode : {"reduced", "complete"}) {
        auto [q, r] = linalg::qr(x, mode);
        checkNear(matmul(q, r), x, tolerance);
        checkOrthonormal(q, tolerance);
        checkNear(triu(r), r, 0);
      }
      for (bool full : {false, true}) {
        auto [left, values, right] = linalg::svd(x, full);
        checkOrthonormal(left, tolerance);
        checkOrthonormal(right.t(), tolerance);
        checkNear(fromSvd(left, values, right), x, tolerance);
        checkNear(linalg::svdvals(x), values, tolerance);
      }
      checkNear(matmul(matmul(x, linalg::pinv(x)), x), x, 10 * tolerance);
    }
}

TEST_CASE("eigenvectors, Cholesky factors and solutions satisfy their equations") {
  for (DType dtype : {f64, f32})
    for (const Shape &shape : {Shape{1, 1}, Shape{2, 2}, Shape{3, 5, 5}, Shape{12, 12}, Shape{0, 2, 2}}) {
      INFO(str(TensorSpec{dtype, shape}));
      const double tolerance = dtype == f64 ? 1e-12 : 5e-5;
      Tensor x = sample(shape, dtype), s = x + x.t(), p = matmul(x, x.t()) + unit(shape.back(), dtype);
      auto [values, vectors] = linalg::eigh(s);
      checkOrthonormal(vectors, tolerance);
      checkNear(matmul(vectors * values.unsqueeze(-2), vectors.t()), s, tolerance);
      checkNear(linalg::eigvalsh(triu(s), "U"), values, tolerance);
      checkNear(values, sort(values).values, 0);
      Tensor l = linalg::cholesky(p), right = sample(shape, dtype, 3);
      checkNear(matmul(l, l.t()), p, tolerance);
      checkNear(matmul(p, linalg::cholesky_solve(right, l)), right, 10 * tolerance);
      checkNear(matmul(p, linalg::solve(p, right)), right, 10 * tolerance);
      checkNear(matmul(p, linalg::inv(p)), broadcast_to(unit(shape.back(), dtype), shape), 10 * tolerance);
      checkNear(linalg::slogdet(p).logabsdet, log(linalg::det(p)), 10 * tolerance);
    }
}

TEST_CASE("traces with symbolic batch and matrix sizes compute what eager calls do") {
  Dim b("b"), n("n"), m("m", 1, 64);
  const Tensor square = sample({2, 4, 4}), tall = sample({3, 5, 3}), wide = sample({2, 3, 5});
  checkTraced([](const Tensor &x) { return std::vector{linalg::det(x), linalg::inv(x), linalg::solve(x, x.t())}; },
              square, {b, n, n});
  checkTraced([](const Tensor &x) { return std::vector{linalg::cholesky(matmul(x, x.t()))}; }, square, {b, n, n});
  checkTraced(
      [](const Tensor &x) {
        auto [values, vectors] = linalg::eigh(x);
        return std::vector{values, vectors, linalg::matrix_exp(x)};
      },
      square, {b, n, n});
  for (const Tensor &x : {tall, wide}) {
    checkTraced([](const Tensor &x) { return linalg::qr(x).R; }, x, {b, n, m});
    checkTraced([](const Tensor &x) { return linalg::lu_factor(x).LU; }, x, {b, n, m});
    checkTraced([](const Tensor &x) { return linalg::pinv(x); }, x, {b, n, m});
    checkTraced(
        [](const Tensor &x) {
          auto [u, s, v] = linalg::svd(x, false);
          return std::vector{s, matmul(u * s.unsqueeze(-2), v)};
        },
        x, {b, n, m});
  }
  CHECK(jit([](const Tensor &x) { return linalg::det(x); })(square).shape() == Shape{2});
}

TEST_CASE("gradients of linear algebra agree with differences") {
  const Tensor square = sample({2, 3, 3}), tall = sample({4, 3}), wide = sample({3, 4});
  auto check = [](const TensorFunction &f, const std::vector<Tensor> &at) { gradcheck(f, at); };
  check([](Tensors x) { return std::vector{linalg::det(x[0]), linalg::slogdet(x[0]).logabsdet}; }, {square});
  check([](Tensors x) { return std::vector{linalg::inv(x[0]), linalg::lu_factor(x[0]).LU}; }, {square});
  check([](Tensors x) { return std::vector{linalg::solve(x[0], x[1])}; }, {sample({3, 3}), sample({2, 3, 2})});
  check([](Tensors x) { return std::vector{linalg::solve_triangular(x[0], x[1], true)}; }, {square, square});
  check([](Tensors x) { return std::vector{linalg::cholesky(matmul(x[0], x[0].t()))}; }, {square});
  check(
      [](Tensors x) {
        auto [values, vectors] = linalg::eigh(x[0] + x[0].t());
        return std::vector{values, vectors, linalg::eigvalsh(x[0] + x[0].t()), linalg::matrix_exp(x[0])};
      },
      {square});
  for (const Tensor &at : {tall, wide}) {
    check(
        [](Tensors x) {
          auto [q, r] = linalg::qr(x[0]);
          auto [u, s, v] = linalg::svd(x[0], false);
          return std::vector{q, r, u, s, v, linalg::pinv(x[0]), linalg::lu_factor(x[0]).LU};
        },
        {at});
    check([](Tensors x) { return std::vector{linalg::lstsq(x[0], x[1]).solution}; }, {at, sample({at.size(0), 2})});
    check([](Tensors x) { return std::vector{linalg::matrix_norm(x[0], "nuc"), linalg::matrix_norm(x[0], 2)}; }, {at});
  }
}

TEST_CASE("gradients of linear algebra can be differentiated, traced and vectorised") {
  const Tensor x = sample({3, 3});
  auto slope = [](Tensors in) { // of the sum of squares, in a form that gradcheck can differentiate
    EnableGrad enabled;
    Tensor x = in[0];
    if (!x.isTraced() && !x.requires_grad())
      x.requires_grad_();
    Tensor y = linalg::det(x) * linalg::inv(x) + linalg::eigvalsh(x);
    return std::vector{grad((y * y).sum(), {x}, std::nullopt, {.create_graph = true})[0]};
  };
  gradcheck(slope, {x});
  Graph graph = trace(slope, {{f64, {Dim("n"), Dim("n")}}});
  checkNear(graph.run({x})[0], slope({x})[0].detach(), 1e-10);
  const Tensor many = sample({4, 3, 3});
  auto each = vmap([](const Tensor &a) { return linalg::inv(a) + linalg::det(a); });
  checkNear(each(many), linalg::inv(many) + linalg::det(many).unsqueeze(-1).unsqueeze(-1), 1e-10);
}

TEST_CASE("singular matrices") {
  const Tensor singular = tensor({{1.0, 2.0}, {2.0, 4.0}}, f64), zero = zeros({2, 2}, f64);
  CHECK(linalg::det(singular).item() == 0);
  CHECK(linalg::slogdet(zero).logabsdet.item() == -INFINITY);
  CHECK(linalg::slogdet(zero).sign.item() == 0);
  CHECK(linalg::inv_ex(singular).info.item<int>() == 2);
  CHECK(linalg::matrix_rank(singular).item<int>() == 1);
  CHECK(linalg::cond(singular, 1).item() == INFINITY);
  CHECK(linalg::cholesky_ex(-singular).info.item<int>() == 1);
  CHECK_ERROR(linalg::inv(singular).wait(), "a matrix is singular", "inv_ex");
  CHECK_ERROR(linalg::solve(singular, singular).wait(), "a matrix is singular", "solve_ex");
  CHECK_ERROR(linalg::cholesky(-singular).wait(), "not positive definite", "cholesky_ex");
  CHECK(contains(messageOf([&] { jit([](const Tensor &x) { return linalg::inv(x); })(singular).wait(); }), "singular"));
  // The gradient of the determinant is the transposed adjugate, also here.
  gradcheck([](Tensors x) { return std::vector{linalg::det(x[0])}; }, {singular});
  auto [u, s, v] = linalg::svd(zero);
  checkOrthonormal(u, 1e-15);
  checkNear(s, zeros({2}, f64), 0);
}

TEST_CASE("matrices of size 0, NaN and extreme numbers") {
  const Tensor none = zeros({3, 0, 0}, f64);
  checkNear(linalg::det(none), ones({3}, f64), 0);
  checkNear(linalg::inv(none), none, 0);
  checkNear(linalg::solve(none, zeros({3, 0, 2}, f64)), zeros({3, 0, 2}, f64), 0);
  CHECK(linalg::eigh(none).eigenvalues.shape() == Shape{3, 0});
  CHECK(linalg::svd(zeros({0, 4}, f64)).Vh.shape() == Shape{4, 4});
  CHECK(linalg::qr(zeros({4, 0}, f64), "complete").Q.shape() == Shape{4, 4});
  const Tensor nan = where(unit(3) > 0, NAN, sample({3, 3}));
  for (const Tensor &x : {linalg::det(nan), linalg::inv(nan), linalg::eigvalsh(nan), linalg::svdvals(nan)})
    CHECK(is_nan(x).all().item<bool>());
  for (double scale : {1e-200, 1e200}) {
    const Tensor x = symmetric({4, 4});
    checkNear(linalg::svdvals(x * scale) / scale, linalg::svdvals(x), 1e-12);
    checkNear(linalg::eigvalsh(x * scale) / scale, linalg::eigvalsh(x), 1e-12);
    checkNear(linalg::qr(x * scale).R / scale, linalg::qr(x).R, 1e-12);
  }
}

TEST_CASE("errors of linear algebra name the shapes") {
  Tensor x = sample({2, 3, 4}), s = sample({3, 3});
  CHECK_ERROR(linalg::det(x), "det", "must be square", "f64[2, 3, 4]");
  CHECK_ERROR(linalg::inv(sample({3})), "takes matrices", "f64[3]");
  CHECK_ERROR(linalg::eigh(ones({2, 2}, i64)), "takes floats", "to(f32)");
  CHECK_ERROR(linalg::eigh(s, "X"), "UPLO", "\"X\"");
  CHECK_ERROR(linalg::solve(s, sample({4, 2})), "3 rows", "f64[4, 2]");
  CHECK_ERROR(linalg::solve(s, s.to(f32)), "one element type");
  CHECK_ERROR(linalg::solve(sample({2, 3, 3}), sample({4, 3, 1})), "batches", "do not fit");
  CHECK_ERROR(linalg::qr(s, "raw"), "reduced, complete or r");
  CHECK_ERROR(linalg::lstsq(s, sample({2, 1})), "3 rows");
  CHECK_ERROR(linalg::matrix_norm(s, 3), "must be 1, 2, infinity");
  CHECK_ERROR(linalg::multi_dot({s, sample({4, 3})}), "operand 1", "f64[4, 3]");
  CHECK_ERROR(trace([](const Tensor &x) { return linalg::det(x); }, {{f64, {Dim("n"), Dim("m")}}}), "same symbol");
}
