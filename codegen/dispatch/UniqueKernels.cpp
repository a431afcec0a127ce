#include "codegen/dispatch/UniqueKernels.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

// Structural key of a kernel: its body with numbered values, without names and locations.
static std::string meaning(KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream out(text);
  Block &body = kernel.getBody().front();
  if (auto inPlace = kernel.getInPlaceAttr())
    out << inPlace;
  llvm::DenseMap<Value, size_t> numbers;
  for (BlockArgument argument : body.getArguments()) {
    numbers[argument] = numbers.size();
    out << argument.getType() << ';';
  }
  for (Operation &op : body) {
    out << op.getName().getStringRef();
    for (Value operand : op.getOperands())
      out << ' ' << numbers.lookup(operand);
    out << ' ' << op.getAttrDictionary() << ' ';
    for (Value result : op.getResults()) {
      numbers[result] = numbers.size();
      out << result.getType() << ';';
    }
    out << '\n';
  }
  return text;
}

UniqueKernels::UniqueKernels(ModuleOp module) {
  llvm::StringMap<uint32_t> known;
  module.walk([&](KernelOp kernel) {
    auto [it, inserted] = known.try_emplace(meaning(kernel), kernels.size());
    if (inserted)
      kernels.push_back({kernel, "kernel" + std::to_string(kernels.size()), {}});
    indexOf[kernel] = it->second;
  });
}

} // namespace burin::codegen
