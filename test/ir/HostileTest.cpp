// Type inference never crashes: calls with extreme sizes and attributes are either inferred or refused with a message.
#include "test/ir/Generator.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;

/// Infers the call. An accepted call must be accepted again in its canonical form, unchanged. Returns whether it was
/// accepted.
static bool check(ir::InferCall call) {
  bool ok = ir::infer(call);
  INFO(call.info.name);
  REQUIRE(ok == call.error.empty());
  if (!ok)
    return false;
  for (const TensorSpec &result : call.results)
    for (const Dim &d : result.shape)
      REQUIRE((!d.isStatic() || d.value() >= 0));
  ir::InferCall again{call.info, call.operands, call.attrs, /*strict=*/true, {}, {}};
  bool isStable = ir::infer(again);
  INFO(again.error);
  REQUIRE(isStable);
  REQUIRE(again.attrs == call.attrs);
  return true;
}

TEST_CASE("random calls are answered, and canonical forms are stable") {
  Generator g(2024);
  size_t accepted = 0;
  for (int round = 0; round < 300; ++round)
    for (const ir::OpInfo &info : ir::opTable())
      accepted += check(randomCall(g, info));
  CHECK(accepted > 1000); // enough calls pass the first checks
}

TEST_CASE("valid calls with something wrong are answered") {
  Generator g(11);
  for (const ir::InferCall &valid : validCalls()) {
    REQUIRE(check(valid));
    size_t accepted = 0;
    for (int round = 0; round < 2000; ++round) {
      ir::InferCall call = valid;
      for (size_t mutations = 1 + g.below(2); mutations-- > 0;)
        mutate(g, call);
      accepted += check(std::move(call));
    }
    CHECK(accepted > 20);
  }
}
