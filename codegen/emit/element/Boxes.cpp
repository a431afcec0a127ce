#include "codegen/emit/element/Boxes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

DType overlapType(NonMaxSuppressionOp op) { return dtypeOf(op.getBoxes()) == DType::f64 ? DType::f64 : DType::f32; }

SmallVector<Scalar> boxAt(ElementEmitter &e, NonMaxSuppressionOp op, Value batch, Value index) {
  KernelBuilder &k = e.k;
  SmallVector<Scalar> given;
  for (int64_t i = 0; i < 4; ++i) {
    Value x = e.element(op.getBoxes(), {{batch}, {index}, {k.constant(i)}});
    given.push_back(Scalar(k.b, k.loc, x, dtypeOf(op.getBoxes())).to(overlapType(op)));
  }
  SmallVector<Scalar> box;
  for (int axis = 0; axis < 2; ++axis) {
    Scalar a = given[axis], b = given[2 + axis];
    if (op.getCenters()) {
      Scalar half = b * 0.5;
      b = a + half;
      a = a - half;
    }
    box.push_back(min(a, b));
    box.push_back(max(a, b));
  }
  box.push_back((box[1] - box[0]) * (box[3] - box[2]));
  return box;
}

Scalar overlap(ArrayRef<Scalar> box, ArrayRef<Scalar> other, NonMaxSuppressionOp op) {
  auto shared = [&](int axis) {
    Scalar low = max(box[2 * axis], other[2 * axis]), high = min(box[2 * axis + 1], other[2 * axis + 1]);
    return max(high - low, low.constant(0));
  };
  Scalar both = shared(0) * shared(1);
  return both > (box[4] + other[4] - both) * op.getIouThreshold().convertToDouble();
}

} // namespace burin::codegen
