// Shared by the tests of programs that a tracer could misinterpret. For inputs other than the traced ones, each program
// gives the right result, or an error with its line, or is found by JitOptions::check. docs/traces.md lists them.
#pragma once
#include "test/frontend/Check.h"

inline const JitOptions kCheck{.check = JitCheck::Always, .dynamic = {}};
inline JitOptions dynamic(std::vector<std::pair<int64_t, int64_t>> sizes) {
  return {.check = JitCheck::Always, .dynamic = std::move(sizes)};
}

inline bool isClose(const Tensor &a, const Tensor &b) {
  if (a.spec() != b.spec())
    return false;
  return a.numel() == 0 || largestDifference(a.to(f64), b.to(f64)) <= 1e-5 * (1 + b.to(f64).abs().max().item());
}

inline const Tensor kPlus = tensor({1.0, 2.0, 3.0}), kMinus = tensor({-1.0, -2.0, -3.0});

/// Returns whether a message names a line of the tests.
inline bool hasPlace(const std::string &what) { return contains(what, "Test.cpp:") || contains(what, "Misleading.h:"); }

/// Checks that the jitted function gives the results of the plain one for each input, twice.
template <class F> void right(F f, const std::vector<Tensor> &inputs, const JitOptions &options = kCheck) {
  auto compiled = jit(f, options);
  for (int round = 0; round < 2; ++round)
    for (const Tensor &x : inputs) {
      INFO(str(x.spec()));
      CHECK(isClose(compiled(x), f(x)));
    }
}

/// Checks that the jitted function refuses this input and names a line of this file.
template <class F> void refused(F f, const Tensor &x, const std::string &part, const JitOptions &options = kCheck) {
  std::string what = messageOf([&] { jit(f, options)(x); });
  INFO(what);
  CHECK(hasPlace(what));
  CHECK(contains(what, part));
}

/// Checks that results are right until `change`, which happens before call 50, and that JitOptions::check then reports
/// it.
template <class F, class Change> void found(F f, const Tensor &x, Change change) {
  auto compiled = jit(f, kCheck);
  for (int call = 1; call < 50; ++call)
    compiled(x);
  change();
  std::string what = messageOf([&] { compiled(x); });
  INFO(what);
  CHECK(hasPlace(what));
  CHECK(contains(what, "no longer does what it did"));
}

/// Checks that the first call reports a function whose branches or loops change variables of C++.
template <class F> void foundAtOnce(F f) {
  auto compiled = jit(f, kCheck);
  for (int call = 0; call < 3; ++call) {
    std::string what = messageOf([&] { compiled(kPlus); });
    INFO(what);
    CHECK(hasPlace(what));
    CHECK(contains(what, "no longer does what it did"));
  }
}

inline Tensor rows(int64_t n) { return arange(n * 3).to(f32).reshape({n, 3}) * 0.25 - 1.0; }
