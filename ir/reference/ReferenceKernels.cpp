#include "ir/reference/ReferenceOp.h"
#include <map>

namespace burin::ir {

RefKernel findReferenceKernel(std::string_view op) {
  static const auto kernels = [] {
    std::map<std::string_view, RefKernel> all;
    for (const OpInfo &info : opTable())
      if (info.elementwise)
        all[info.name] = ref::elementwise;
    for (auto family :
         {ref::moveKernels, ref::indexKernels, ref::orderKernels, ref::reductionKernels, ref::productKernels,
          ref::convolutionKernels, ref::poolKernels, ref::normKernels, ref::randomKernels})
      for (const RefKernelEntry &entry : family())
        all[entry.op] = entry.kernel;
    return all;
  }();
  auto found = kernels.find(op);
  return found == kernels.end() ? nullptr : found->second;
}

bool runGuarded(RefKernel kernel, RefCall &call) try { return kernel(call); } catch (const std::exception &e) {
  return call.fail(std::string("the interpreter cannot evaluate this: ") + e.what());
}

} // namespace burin::ir
