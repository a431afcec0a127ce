#include "codegen/gpu/Results.h"

using namespace mlir;

namespace burin::codegen {

GpuResults::GpuResults(Block &body, const passes::IterationSpace &a, ArrayRef<Value> results) {
  for (auto [yielded, pointer] : llvm::zip(body.getTerminator()->getOperands(), results))
    stored.push_back({a.contains(yielded) ? Value(yielded) : passes::skipReshapes(yielded), pointer});
}

static void writeOne(PointEmitter &p, Value v, Value pointer) {
  KernelBuilder &k = p.k;
  ArrayRef<int> dims = p.alignment.dims.find(v)->second;
  Value isFirst;
  bool lacksLanes = false;
  for (size_t d = 0; d < p.point.size(); ++d) {
    if (p.alignment.reduced[d] || llvm::is_contained(dims, int(d)))
      continue;
    lacksLanes |= !p.point[d].uniform();
    Value here = k.compare(arith::CmpIPredicate::eq, p.point[d].base, k.constant(0));
    isFirst = isFirst ? arith::AndIOp::create(k.b, k.loc, isFirst, here).getResult() : here;
  }
  Value element = p.at(v);
  if (lacksLanes) {
    if (isa<VectorType>(element.getType()))
      element = vector::ExtractOp::create(k.b, k.loc, element, ArrayRef<int64_t>{0});
    k.when(isFirst, [&] { k.store({pointer, ir::dtypeOf(v), {}}, p.position(v, p.point), element, /*width=*/1, {}); });
  } else if (isFirst) {
    k.when(isFirst, [&] { p.store(v, element, pointer); });
  } else {
    p.store(v, element, pointer);
  }
}

void GpuResults::write(PointEmitter &p) const {
  for (auto &[value, pointer] : stored)
    p.at(value);
  for (auto &[value, pointer] : stored)
    writeOne(p, value, pointer);
}

} // namespace burin::codegen
