#include "frontend/autodiff/tape/Opaque.h"

namespace burin::detail {

namespace {
class TapeOpaque : public TapeNode {
public:
  TapeOpaque(std::vector<TapeEdge> sources, const TensorSpec &result, const char *op, const char *problem,
             const Location &where)
      : TapeNode(op, where), problem(problem) {
    edges = std::move(sources);
    results.push_back(result);
  }
  std::vector<Tensor> propagate(std::vector<Tensor>, bool) override { throw Error(place, op, problem); }

private:
  const char *const problem;
};
} // namespace

void connectOpaque(Tensor &result, std::vector<TapeEdge> sources, const char *op, const char *problem,
                   const Location &where) {
  const TensorSpec &spec = Access::state(result)->spec;
  if (isFloat(spec.dtype))
    result = withEdge(result, {std::make_shared<TapeOpaque>(std::move(sources), spec, op, problem, where), 0});
}

} // namespace burin::detail
