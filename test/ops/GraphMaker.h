// Grows a random graph step by step. Each value comes with a bound on its size and on its rounding error, so that
// results can be compared however long the chain was, and so that no step meets numbers it cannot handle.
#pragma once
#include "test/ops/Graph.h"
#include "test/ops/Values.h"

namespace burin::test {

/// What of a random graph is symbolic.
enum class Symbols {
  One, // in every second graph one dimension, n
  Many // most sizes of inputs, also sums and products of symbols
};

class GraphMaker {
public:
  GraphMaker(Graph &graph, Random &random, Symbols symbols = Symbols::One);

  void step();
  /// Chooses the results.
  void finish();

  /// Values of the symbols, run by run.
  std::vector<std::map<std::string, int64_t>> sizes;
  /// The largest error each result may have.
  std::vector<double> errors;

private:
  using Ints = std::vector<int64_t>;
  /// A value with bounds on its elements and on how far they may be from the exact ones.
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
  /// One that has dimensions, all in all not too many elements.
  Known anyShaped();
  Dim newSize();
  Dim newSymbol();

  // ---- what is known
  const Shape &shape(const Known &x) { return graph.spec(x.value).shape; }
  size_t rank(const Known &x) { return shape(x).size(); }
  DType dtype(const Known &x) { return graph.spec(x.value).dtype; }
  bool isExact(const Known &x) { return x.error == 0; }
  double roundoff(const Known &x);
  /// Elements in the largest run.
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
