// Matrix products, all computed as [batch, rows, inner] times [batch, inner, columns].
#include "ir/reference/ReferenceUtil.h"
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace burin::ir::ref {

namespace {

struct ProductSizes {
  int64_t batch, rows, inner, columns;
};

/// Position of element (row, k) of the left operand: rows[row] + ks[k].
struct Windows {
  Sizes rows, ks;
};

template <class T> void multiply(const Windows &left, const ProductSizes &n, T *c, const T *a, const T *b) {
  for (int64_t row = 0; row < n.batch * n.rows; ++row) {
    const T *matrix = b + row / n.rows * n.inner * n.columns;
    for (int64_t k = 0; k < n.inner; ++k) {
      T x = a[left.rows[size_t(row)] + left.ks[size_t(k)]];
      for (int64_t column = 0; column < n.columns; ++column)
        c[row * n.columns + column] += x * matrix[k * n.columns + column];
    }
  }
}

/// Adds the product to c. Integers are multiplied as unsigned ones, which wrap.
void multiply(const Windows &left, const ProductSizes &n, RefTensor &c, const RefTensor &a, const RefTensor &b) {
  if (isFloat(c.dtype))
    return multiply(left, n, c.reals().data(), a.reals().data(), b.reals().data());
  auto words = [](const RefTensor &t) { return reinterpret_cast<const uint64_t *>(t.ints().data()); };
  multiply(left, n, reinterpret_cast<uint64_t *>(c.ints().data()), words(a), words(b));
}
/// Adds the product with a row-major matrix as left operand.
void multiply(const ProductSizes &n, RefTensor &c, const RefTensor &a, const RefTensor &b) {
  Windows matrix{Sizes(size_t(n.batch * n.rows)), Sizes(size_t(n.inner))};
  for (size_t i = 0; i < matrix.rows.size(); ++i)
    matrix.rows[i] = int64_t(i) * n.inner;
  std::iota(matrix.ks.begin(), matrix.ks.end(), int64_t(0));
  multiply(matrix, n, c, a, b);
}

bool matmul(RefCall &call) {
  const Sizes &a = call.in(0).shape, &b = call.in(1).shape;
  if (!call.require(a.size() >= 2 && b.size() == a.size(), "operands have one rank, at least 2"))
    return false;
  size_t batch = a.size() - 2;
  bool fits = std::equal(a.begin(), a.begin() + int64_t(batch), b.begin()) && a[batch + 1] == b[batch];
  if (!call.require(fits, "shapes " + str(a) + " and " + str(b) + " do not multiply"))
    return false;
  multiply({product(std::span(a).first(batch)), a[batch], b[batch], b[batch + 1]}, call.out(), call.in(0), call.in(1));
  return true;
}

/// The dimensions of `shape` that are in neither list.
Sizes freeDims(const Sizes &shape, const Sizes &batch, const Sizes &contract) {
  Sizes free;
  for (int64_t d = 0; d < int64_t(shape.size()); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contract.begin(), contract.end(), d) == contract.end())
      free.push_back(d);
  return free;
}
Sizes joined(Sizes a, const Sizes &b, const Sizes &c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}
int64_t productOf(const Sizes &shape, const Sizes &dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t(1),
                         [&](int64_t n, int64_t d) { return n * shape[size_t(d)]; });
}

bool dotGeneral(RefCall &call) {
  const RefTensor &lhs = call.in(0), &rhs = call.in(1);
  const auto &lhsBatch = call.attr<Sizes>("lhs_batch"), &rhsBatch = call.attr<Sizes>("rhs_batch");
  const auto &lhsContract = call.attr<Sizes>("lhs_contract"), &rhsContract = call.attr<Sizes>("rhs_contract");
  Sizes lhsFree = freeDims(lhs.shape, lhsBatch, lhsContract), rhsFree = freeDims(rhs.shape, rhsBatch, rhsContract);
  RefTensor a = transposed(lhs, joined(lhsBatch, lhsFree, lhsContract));
  RefTensor b = transposed(rhs, joined(rhsBatch, rhsContract, rhsFree));
  ProductSizes n{productOf(lhs.shape, lhsBatch), productOf(lhs.shape, lhsFree), productOf(lhs.shape, lhsContract),
                 productOf(rhs.shape, rhsFree)};
  if (a.size() != n.batch * n.rows * n.inner || b.size() != n.batch * n.inner * n.columns)
    return call.fail("shapes " + str(lhs.shape) + " and " + str(rhs.shape) + " do not agree");
  multiply(n, call.out(), a, b);
  return true;
}

/// Positions of the elements of a view, in row-major order of its indices.
Sizes offsets(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  Sizes positions(size_t(product(shape)), 0);
  int64_t repeat = int64_t(positions.size());
  for (size_t d = 0; d < shape.size() && repeat > 0; ++d) {
    repeat /= shape[d];
    for (size_t i = 0; i < positions.size(); ++i)
      positions[i] += int64_t(i) / repeat % shape[d] * strides[d];
  }
  return positions;
}

/// The right operand of `contract`, [batch, K, n], from its panels and the columns of its tail.
RefTensor unpacked(const RefTensor &panels, const RefTensor *tail, int64_t batch, int64_t k, int64_t n) {
  int64_t last = tail ? tail->shape[tail->shape.size() - 2] : 0, before = n - last;
  int64_t width = panels.shape.back(), full = before / width, rest = before % width, count = full + (rest != 0);
  RefTensor to = RefTensor::zeros(panels.dtype, {batch, k, n});
  move(to, {0, {batch, full, k, width}, {k * n, width, n, 1}}, panels,
       {0, {batch, full, k, width}, {count * k * width, k * width, width, 1}});
  move(to, {full * width, {batch, k, rest}, {k * n, n, 1}}, panels,
       {full * k * width, {batch, k, rest}, {count * k * width, width, 1}});
  if (tail)
    move(to, {before, {batch, last, k}, {k * n, 1, n}}, *tail, {0, {batch, last, k}, {last * k, k, 1}});
  return to;
}

/// Pads the spatial dimensions with zeros, or crops their ends.
RefTensor padded(const RefTensor &x, size_t batch, const Sizes &padding) {
  Sizes shape = x.shape;
  int64_t start = 0;
  size_t spatial = padding.size() / 2;
  for (size_t i = 0; i < spatial; ++i)
    shape[batch + i] += padding[i] + padding[spatial + i];
  RefTensor to = RefTensor::zeros(x.dtype, shape);
  Sizes steps = rowMajorStrides(shape);
  for (size_t i = 0; i < spatial; ++i)
    start += padding[i] * steps[batch + i];
  Sizes kept = x.shape;
  for (size_t i = 0; i < spatial; ++i)
    kept[batch + i] = std::min(kept[batch + i], shape[batch + i] - padding[i]);
  move(to, {start, kept, steps}, x, {0, kept, rowMajorStrides(x.shape)});
  return to;
}

/// The three bf16 terms of x, or NaN.
std::array<double, 3> bf16Terms(double x) {
  constexpr float least = 0x1p-52f;
  auto rest = float(x);
  if (!std::isfinite(rest) || (rest != 0 && std::fabs(rest) < least))
    return {NAN, NAN, NAN};
  std::array<double, 3> terms{};
  for (double &term : terms) {
    term = std::bit_cast<float>((std::bit_cast<uint32_t>(rest) + 0x8000) & 0xffff0000);
    rest -= float(term);
  }
  return std::isfinite(terms[0]) ? terms : std::array<double, 3>{NAN, NAN, NAN};
}

bool bf16TermsOf(RefCall &call) {
  const RefTensor &x = call.in(0);
  Sizes shape = call.out().shape;
  if (!call.require(x.shape.size() == 2 && shape.size() == 5, "the terms of a matrix have 5 dimensions"))
    return false;
  int64_t rows = x.shape[0], depth = x.shape[1], blocks = shape[1];
  if (!call.require(shape[0] * 16 >= rows && blocks * 32 >= depth,
                    "terms " + str(shape) + " do not hold " + str(x.shape)))
    return false;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < depth; ++k) {
      std::array<double, 3> terms = bf16Terms(x.reals()[size_t(row * depth + k)]);
      for (int64_t term = 0; term < 3; ++term) {
        int64_t tile = (row / 16 * blocks + k / 32) * 3 + term;
        call.out().reals()[size_t((tile * 16 + row % 16) * 32 + k % 16 * 2 + k % 32 / 16)] = terms[size_t(term)];
      }
    }
  return true;
}

/// rhs [K, N] from the terms of its panels.
RefTensor outOfTerms(const RefTensor &terms, int64_t depth, int64_t columns) {
  RefTensor to = RefTensor::zeros(DType::f32, {depth, columns});
  int64_t blocks = terms.shape[1];
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t term = 0; term < 3; ++term) {
        int64_t tile = ((n / 32 * blocks + k / 32) * 3 + term) * 2 + n % 32 / 16;
        size_t at = size_t((tile * 16 + k % 16) * 32 + n % 16 * 2 + k % 32 / 16);
        to.reals()[size_t(k * columns + n)] += terms.reals()[at];
      }
  return to;
}

/// Computed from lhs itself, which is the sum of its terms.
bool contractOfTerms(RefCall &call) {
  const RefTensor &lhs = call.in(0), &terms = call.in(1);
  int64_t depth = lhs.shape.back(), columns = call.out().shape.back();
  bool fits = terms.shape.size() == 6 && terms.shape[0] * 32 >= columns && terms.shape[1] * 32 >= depth;
  if (!call.require(fits, "terms " + str(terms.shape) + " do not hold panels of " + str(Sizes{depth, columns})))
    return false;
  int64_t rows = product(std::span(lhs.shape).first(lhs.shape.size() - 1));
  multiply({1, rows, depth, columns}, call.out(), lhs, outOfTerms(terms, depth, columns));
  return true;
}

bool bf16Pairs(RefCall &call) {
  const RefTensor &x = call.in(0);
  const size_t axis = x.shape.size() - size_t(call.attr<int64_t>("axis"));
  const int64_t depth = x.shape[axis], pairs = (depth + 1) / 2, inner = product(std::span(x.shape).subspan(axis + 1));
  std::vector<int64_t> &to = call.out().ints();
  for (int64_t i = 0; i < int64_t(to.size()); ++i) {
    const int64_t step = i / inner % pairs * 2, at = (i / inner / pairs * depth + step) * inner + i % inner;
    auto bitsOf = [&](int64_t from) { return std::bit_cast<uint32_t>(float(x.reals()[size_t(from)])) >> 16; };
    to[size_t(i)] = int32_t(bitsOf(at) | (step + 1 < depth ? bitsOf(at + inner) << 16 : 0));
  }
  return true;
}

/// Panels of bf16 [batch…, panels, taps * channels, width] from those of pairs.
RefTensor outOfPairs(const RefTensor &pairs, int64_t taps, int64_t channels) {
  Sizes shape = pairs.shape;
  const int64_t width = shape.back(), perTap = (channels + 1) / 2;
  shape[shape.size() - 2] = taps * channels;
  RefTensor to = RefTensor::zeros(DType::bf16, shape);
  for (int64_t i = 0; i < int64_t(to.reals().size()); ++i) {
    const int64_t row = i / width, channel = row % channels, tap = row / channels;
    const auto both = uint32_t(pairs.ints()[size_t((tap * perTap + channel / 2) * width + i % width)]);
    to.reals()[size_t(i)] = std::bit_cast<float>(channel % 2 ? both & 0xffff0000 : both << 16);
  }
  return to;
}

bool contract(RefCall &call) {
  if (call.has(3))
    return contractOfTerms(call);
  size_t batch = size_t(call.attr<int64_t>("batch"));
  const RefTensor lhs = padded(call.in(0), batch, call.attr<Sizes>("padding"));
  const bool isOfPairs = call.in(0).dtype == DType::bf16 && call.in(1).dtype == DType::i32 && !lhs.shape.empty();
  const RefTensor rhs =
      isOfPairs ? outOfPairs(call.in(1), product(call.attr<Sizes>("kernel")), lhs.shape.back()) : call.in(1);
  const auto &kernel = call.attr<Sizes>("kernel"), &strides = call.attr<Sizes>("strides");
  const auto &dilations = call.attr<Sizes>("dilations");
  const Sizes &result = call.out().shape;
  size_t spatial = kernel.size();
  bool fits = lhs.shape.size() == batch + spatial + 1 && result.size() == lhs.shape.size() &&
              rhs.shape.size() == batch + 3 && strides.size() == spatial && dilations.size() == spatial;
  if (!call.require(fits,
                    "lhs " + str(lhs.shape) + ", rhs " + str(rhs.shape) + " do not fit the result " + str(result)))
    return false;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t out = result[batch + i], last = (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i];
    if (out > 0 && last >= lhs.shape[batch + i])
      return call.fail("windows of " + str(kernel) + " leave lhs " + str(lhs.shape));
  }
  int64_t n = result.back(), channels = lhs.shape.back(), batches = product(std::span(lhs.shape).first(batch));
  int64_t k = product(kernel) * channels, width = rhs.shape.back();
  const RefTensor *tail = call.has(2) ? &call.in(2) : nullptr;
  int64_t last = tail && tail->shape.size() == batch + 3 ? tail->shape[batch + 1] : 0;
  if (tail && (last > n || tail->size() != batches * last * k))
    return call.fail("tail " + str(tail->shape) + " does not hold columns of " + std::to_string(k));
  if (rhs.shape[batch + 1] != k || width <= 0 || rhs.size() != batches * ((n - last + width - 1) / width) * k * width)
    return call.fail("rhs " + str(rhs.shape) + " does not hold panels of " + std::to_string(k) + " by " +
                     std::to_string(n));
  Sizes steps = rowMajorStrides(lhs.shape);
  Sizes rowStrides(steps.begin(), steps.end() - 1), tapStrides(steps.begin() + int64_t(batch), steps.end());
  for (size_t i = 0; i < spatial; ++i) {
    rowStrides[batch + i] *= strides[i];
    tapStrides[i] *= dilations[i];
  }
  Sizes taps = kernel;
  taps.push_back(channels);
  Windows windows{offsets(std::span(result).first(batch + spatial), rowStrides), offsets(taps, tapStrides)};
  multiply(windows, {batches, product(std::span(result).subspan(batch, spatial)), k, n}, call.out(), lhs,
           unpacked(rhs, tail, batches, k, n));
  return true;
}

constexpr RefKernelEntry kProductKernels[] = {{"matmul", matmul},
                                              {"dot_general", dotGeneral},
                                              {"contract", contract},
                                              {"bf16_terms", bf16TermsOf},
                                              {"bf16_pairs", bf16Pairs}};

} // namespace

std::span<const RefKernelEntry> productKernels() { return kProductKernels; }

} // namespace burin::ir::ref
