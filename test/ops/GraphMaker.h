// Generates a random graph step by step. Each value has a bound on its magnitude and on its rounding error, so that
// results of long chains can be compared, and no step gets operands outside of its domain.
#pragma once
#include "test/ops/Graph.h"
#include "test/ops/Values.h"

namespace burin::test {

/// The symbolic sizes of a random graph.
enum class Symbols {
  One, // in every second graph one dimension, n
  Many // most sizes of inputs, and sums and products of symbols
};

class GraphMaker {
public:
  GraphMaker(Graph &graph, Random &random, Symbols symbols = Symbols::One);

  void step();
  /// Chooses the results.
  void finish();

  /// Values of the symbols, per run.
  std::vector<std::map<std::string, int64_t>> sizes;
  /// The allowed error of each result.
  std::vector<double> errors;

private:
  using Ints = std::vector<int64_t>;
  /// A value with bounds on its elements and on their distance from the exact ones.
  struct Known {
    Graph::Value value;
    double bound, error;
  };

  // ---- choosing
  size_t below(size_t n) { return random() % n; }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <class T> const T &pick(const std::vector<T> &from) { return from[below(from.size())]; }
  Known any();
  Known anyFloat();
  /// Returns a value with dimensions and not too many elements.
  Known anyShaped();
  Dim newSize();
  Dim newSymbol();

  // ---- what is known
  const Shape &shape(const Known &x) { return graph.spec(x.value).shape; }
  size_t rank(const Known &x) { return shape(x).size(); }
  DType dtype(const Known &x) { return graph.spec(x.value).dtype; }
  bool isExact(const Known &x) { return x.error == 0; }
  double roundoff(const Known &x);
  /// Number of elements in the largest run.
  double count(const Shape &shape);

  // ---- steps
  Known apply(const std::string &op, const std::vector<Known> &operands, const Attrs &attrs, double bound,
              double error);
  Known input(const TensorSpec &spec);
  Known constant(const TensorSpec &spec);
  Known keep(Known x);
  Known tame(Known x);
  Known castTo(Known x, DType type);
  Known broadcast(Known x, const Shape &to);
  Known unary(Known x);
  Known combine(Known x, Known y);
  Known binary();
  Known reduce(Known x);
  Known normalised(Known x);
  Known moved(Known x);
  Known sliced(Known x, size_t axis);
  Known joined(Known x);
  Known indexed(Known x);
  Known product(Known x);
  Known windowed(Known x);
  Known selected();
  Known running(Known x);
  Known looped(Known x);

  Graph &graph;
  Random &random;
  Symbols symbols;
  std::vector<Known> known;
  DType type;
};

} // namespace burin::test
