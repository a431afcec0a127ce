// Reductions, argmax and argmin: the reduced dimensions are moved to the end, so that each result reduces one row.
#include "ir/reference/ReferenceScalar.h"
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>

namespace burin::ir::ref {

namespace {

/// x with the reduced dimensions last: [rows, length].
struct Rows {
  RefTensor tensor;
  size_t rows, length;
};

Rows rowsOver(const RefTensor &x, const Sizes &axes) {
  std::vector<bool> reduced(x.shape.size(), axes.empty());
  for (int64_t a : axes)
    reduced.at(axisOf(a, x.shape.size())) = true;
  Sizes perm;
  int64_t rows = 1, length = 1;
  for (bool last : {false, true})
    for (size_t d = 0; d < x.shape.size(); ++d)
      if (reduced[d] == last) {
        perm.push_back(int64_t(d));
        (last ? length : rows) *= x.shape[d];
      }
  return {transposed(x, perm), size_t(rows), size_t(length)};
}

/// Result r is f(row r as a span of doubles).
template <class F> bool reduceReals(RefCall &call, const Rows &rows, F f) {
  std::span<const double> elements = rows.tensor.reals();
  for (size_t r = 0; r < rows.rows; ++r)
    call.out().reals()[r] = f(elements.subspan(r * rows.length, rows.length));
  return true;
}
template <class F> bool reduceInts(RefCall &call, const Rows &rows, F f) {
  std::span<const int64_t> elements = rows.tensor.ints();
  for (size_t r = 0; r < rows.rows; ++r)
    call.out().ints()[r] = f(elements.subspan(r * rows.length, rows.length));
  return true;
}

Rows rowsOf(RefCall &call) { return rowsOver(call.in(), call.attr<Sizes>("axes")); }

/// Folds the elements of every row into `start`.
template <class Real, class Int> bool fold(RefCall &call, double realStart, Real real, int64_t intStart, Int integer) {
  Rows rows = rowsOf(call);
  auto along = [](auto start, auto f) {
    return [=](auto row) {
      auto sum = start;
      for (auto x : row)
        sum = f(sum, x);
      return sum;
    };
  };
  return isFloat(call.in().dtype) ? reduceReals(call, rows, along(realStart, real))
                                  : reduceInts(call, rows, along(intStart, integer));
}

template <class T> T sumOf(std::span<const T> row) {
  T sum = 0;
  for (T x : row)
    sum = wrappingSum(sum, x);
  return sum;
}

bool reduceSum(RefCall &call) {
  auto sum = [](auto x, auto y) { return wrappingSum(x, y); };
  return fold(call, 0, sum, 0, sum);
}
bool reduceProd(RefCall &call) {
  return fold(
      call, 1, [](double x, double y) { return x * y; }, 1,
      [](int64_t x, int64_t y) { return int64_t(uint64_t(x) * uint64_t(y)); });
}
bool reduceMax(RefCall &call) {
  auto larger = [](auto x, auto y) { return maximum(x, y); };
  return fold(call, -HUGE_VAL, larger, isFloat(call.in().dtype) ? 0 : lowest(call.in().dtype), larger);
}
bool reduceMaxNum(RefCall &call) {
  return reduceReals(call, rowsOf(call), [](std::span<const double> row) {
    double top = -HUGE_VAL;
    for (double x : row)
      top = x > top ? x : top;
    return top;
  });
}
bool reduceMin(RefCall &call) {
  auto smaller = [](auto x, auto y) { return minimum(x, y); };
  return fold(call, HUGE_VAL, smaller, isFloat(call.in().dtype) ? 0 : highest(call.in().dtype), smaller);
}

bool reduceMean(RefCall &call) {
  return reduceReals(call, rowsOf(call), [](auto row) { return sumOf(row) / double(row.size()); });
}

bool reduceAverage(RefCall &call) {
  double correction = double(call.attr<int64_t>("correction"));
  bool squared = call.attr<bool>("squared");
  return reduceReals(call, rowsOf(call), [&](std::span<const double> row) {
    double sum = 0;
    for (double x : row)
      sum += squared ? x * x : x;
    return sum / std::max(double(row.size()) - correction, 0.0);
  });
}

bool reduceVar(RefCall &call) {
  double correction = double(call.attr<int64_t>("correction"));
  return reduceReals(call, rowsOf(call), [&](std::span<const double> row) {
    double mean = sumOf(row) / double(row.size()), squares = 0;
    for (double x : row)
      squares += (x - mean) * (x - mean);
    return squares / std::max(double(row.size()) - correction, 0.0);
  });
}

bool logsumexp(RefCall &call) {
  return reduceReals(call, rowsOf(call), [&](std::span<const double> row) {
    double top = -HUGE_VAL, sum = 0;
    for (double x : row)
      top = maximum(top, x);
    if (!std::isfinite(top)) // all -inf, an inf or a NaN
      return top;
    for (double x : row)
      sum += std::exp(x - top);
    return top + std::log(sum);
  });
}

/// 1 if any (all) of the elements are non-zero; NaN counts as non-zero.
template <bool Any> bool reduceBool(RefCall &call) {
  Rows rows = rowsOf(call);
  auto test = [&](const auto &elements) {
    for (size_t r = 0; r < rows.rows; ++r) {
      auto first = elements.begin() + int64_t(r * rows.length), last = first + int64_t(rows.length);
      auto nonZero = [](auto x) { return x != 0; };
      call.out().ints()[r] = Any ? std::any_of(first, last, nonZero) : std::all_of(first, last, nonZero);
    }
  };
  std::visit(test, rows.tensor.data);
  return true;
}

/// The index of the first element that no other beats; NaN beats every number.
template <class Better> bool argReduce(RefCall &call, Better better) {
  Rows rows = rowsOver(call.in(), {call.attr<int64_t>("axis")});
  if (rows.length == 0 && rows.rows != 0)
    return call.fail("no element to choose from in " + str(call.in().shape));
  auto choose = [&](const auto &elements) {
    for (size_t r = 0; r < rows.rows; ++r) {
      auto row = elements.begin() + int64_t(r * rows.length);
      int64_t best = 0;
      for (int64_t i = 1; i < int64_t(rows.length) && row[best] == row[best]; ++i)
        if (row[i] != row[i] || better(row[i], row[best]))
          best = i;
      call.out().ints()[r] = best;
    }
  };
  std::visit(choose, rows.tensor.data);
  return true;
}
bool argmax(RefCall &call) {
  return argReduce(call, [](auto x, auto y) { return x > y; });
}
bool argmin(RefCall &call) {
  return argReduce(call, [](auto x, auto y) { return x < y; });
}

constexpr RefKernelEntry kReductionKernels[] = {
    {"reduce_sum", reduceSum},
    {"reduce_prod", reduceProd},
    {"reduce_max", reduceMax},
    {"reduce_min", reduceMin},
    {"reduce_mean", reduceMean},
    {"reduce_var", reduceVar},
    {"logsumexp", logsumexp},
    {"reduce_any", reduceBool<true>},
    {"reduce_all", reduceBool<false>},
    {"reduce_average", reduceAverage},
    {"reduce_max_num", reduceMaxNum},
    {"argmax", argmax},
    {"argmin", argmin},
};

} // namespace

std::span<const RefKernelEntry> reductionKernels() { return kReductionKernels; }

} // namespace burin::ir::ref
