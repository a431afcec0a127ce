#include "runtime/format/Stages.h"
#include <algorithm>

namespace burin::rt {

uint32_t Stages::ofStep(uint32_t step) const {
  uint32_t stage = uint32_t(list.size()) - 1;
  while (list[stage].firstStep > step)
    --stage;
  return stage;
}

Stages stagesOf(const Plan &plan) {
  Stages out;
  std::vector<uint32_t> ofSymbol;
  out.list.push_back({0, uint32_t(plan.steps.size()), 0});
  for (const Symbol &symbol : plan.symbols) {
    bool computed = symbol.kind == Symbol::Kind::Computed;
    if (computed && (out.list.size() == 1 || out.list.back().firstStep != symbol.step)) {
      out.list.back().endStep = symbol.step;
      out.list.push_back({symbol.step, uint32_t(plan.steps.size()), uint32_t(ofSymbol.size())});
    }
    ofSymbol.push_back(uint32_t(out.list.size()) - 1);
    out.list.back().symbols = uint32_t(ofSymbol.size());
  }
  for (const Expr &expr : plan.exprs) {
    uint32_t stage = 0;
    for (const Expr::Instr &i : expr.program)
      if (i.op == Expr::Op::Symbol)
        stage = std::max(stage, ofSymbol[size_t(i.value)]);
    out.ofExpr.push_back(stage);
  }
  for (const ArenaBuffer &buffer : plan.buffers)
    out.ofBuffer.push_back(out.ofStep(buffer.firstStep));
  for (const TensorInfo &output : plan.outputs) {
    uint32_t stage = 0;
    for (ExprId dim : output.dims)
      stage = std::max(stage, out.ofExpr[dim]);
    out.ofOutput.push_back(stage);
  }
  return out;
}

} // namespace burin::rt
