// Shared by the generated tests of docs/from-pytorch.md.
#pragma once
#include <array>
#include <burin/burin.h>
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;

/// A tensor as text, "f32 3 4 : 0.5 1.5 …": element type, sizes, elements.
struct Input {
  const char *name;
  TensorSpec spec; // may contain symbols
  const char *value;
};
extern const std::vector<Input> inputs;

enum class Kind { Traced, Eager, Shapes }; // Shapes: run eagerly, compare only shapes, as the elements are random
struct Row {
  int line; // in docs/from-pytorch.md
  const char *expression;
  Kind kind;
  std::vector<Tensor> (*compute)(const std::vector<Tensor> &in);
  std::vector<const char *> results; // computed by PyTorch
};

/// Evaluates each row and compares it with PyTorch's results.
void checkRows(const std::vector<Row> &rows);

/// Returns the inputs as an array, for a structured binding.
inline std::array<Tensor, 15> nameAll(const std::vector<Tensor> &in) {
  std::array<Tensor, 15> named;
  REQUIRE(in.size() == named.size());
  std::copy(in.begin(), in.end(), named.begin());
  return named;
}

inline std::vector<Tensor> toList(const Tensor &x) { return {x}; }
inline std::vector<Tensor> toList(std::vector<Tensor> xs) { return xs; }
inline std::vector<Tensor> toList(const std::pair<Tensor, Tensor> &x) { return {x.first, x.second}; }
inline std::vector<Tensor> toList(const SortResult &x) { return {x.values, x.indices}; }
/// The members of a result of several tensors.
template <class T>
  requires std::is_aggregate_v<T>
std::vector<Tensor> toList(const T &x) {
  if constexpr (sizeof(T) == 2 * sizeof(Tensor)) {
    const auto &[first, second] = x;
    return {first, second};
  } else {
    const auto &[first, second, third] = x;
    return {first, second, third};
  }
}
