#include "frontend/tensor/functions/HostFunctions.h"
#include "burin/graph/graph.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/functions/Creation.h"
#include "runtime/support/Format.h"
#include <cstring>

namespace burin::detail {

std::vector<Tensor> callHost(HostFunction &host, std::span<const Tensor> inputs, std::span<const TensorSpec> wanted) {
  NoTrace noTrace;
  NoGrad noGrad;
  std::vector<Tensor> results = host.function(inputs, host.where);
  if (results.size() != wanted.size())
    throw Error(host.where, "host_call",
                "the function returns " + std::to_string(results.size()) + " tensors; " +
                    std::to_string(wanted.size()) + " were announced");
  for (size_t i = 0; i < results.size(); ++i) {
    TensorSpec given = results[i].spec(host.where);
    if (stateOf(results[i], host.where).weak && given.shape.empty() && wanted[i].shape.empty())
      results[i] = results[i].to(given.dtype = wanted[i].dtype, host.where);
    if (given != wanted[i])
      throw Error(host.where, "host_call",
                  "result " + std::to_string(i) + " of the function is " + str(given) + "; " + str(wanted[i]) +
                      " was announced");
  }
  return results;
}

static TensorSpec specOf(const rt::TensorView &view) { return {view.dtype, Shape(view.shape, view.shape + view.rank)}; }

rt::Status callHostFromRun(void *functions, uint32_t function, std::span<const rt::TensorView> inputs,
                           std::span<const rt::TensorView> results) {
  HostFunction &host = *(*static_cast<HostFunctions *>(functions))[function];
  try {
    std::vector<Tensor> given;
    for (const rt::TensorView &input : inputs)
      given.push_back(copyOf(input.data, specOf(input), host.where));
    std::vector<TensorSpec> wanted;
    for (const rt::TensorView &result : results)
      wanted.push_back(specOf(result));
    std::vector<Tensor> made = callHost(host, given, wanted);
    for (size_t i = 0; i < made.size(); ++i) {
      const StorageRef storage = concreteStorage(made[i], "host_call", host.where);
      const rt::SharedBuffer &elements = await(storage, host.where);
      if (const size_t bytes = byteCount(wanted[i]))
        std::memcpy(results[i].data, elements.data(), bytes);
    }
    return {};
  } catch (const std::exception &error) {
    return {rt::ErrorCode::Data, rt::text("a function that host_call runs has failed: ", error.what())};
  } catch (...) {
    return {rt::ErrorCode::Data, "a function that host_call runs has thrown what is no std::exception"};
  }
}

void refuseToSave(const HostFunctions &functions, const Location &where) {
  if (functions.empty())
    return;
  throw Error(where, "save",
              "the host_call at " + functions.front()->where.str() +
                  " runs a C++ function of this process, which no file can hold; write it with ops, or save the parts "
                  "before and after it");
}

static thread_local InUse *innermost = nullptr;

InUse::InUse(std::span<const void *const> held, const char *op, const Location &where) : outer(innermost), held(held) {
  for (InUse *other = innermost; other; other = other->outer)
    if (std::ranges::any_of(held, [&](const void *one) { return std::ranges::binary_search(other->held, one); }))
      throw Error(where, op,
                  "a function that host_call runs wants states that the run which has called it is using; call it "
                  "after that run");
  innermost = this;
}
InUse::~InUse() { innermost = outer; }

} // namespace burin::detail
