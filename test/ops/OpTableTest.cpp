// One case per op of the table: `ops-tests "op: matmul"`; with other operands: `--rng-seed 77`.
#include "test/ops/Row.h"
#include <catch2/catch.hpp>
#include <set>

using namespace burin;
using namespace burin::test;

namespace {

uint64_t seed() {
  const uint64_t given = Catch::rngSeed();
  return given ? given : 20240;
}

class RowCase : public Catch::ITestInvoker {
public:
  explicit RowCase(const Row &row) : row(row) {}
  void invoke() const override {
    for (const std::string &target : cpuTargets()) {
      std::string different = tryRow(row, target, seed(),
                                     [&](Graph &graph) -> Runner {
                                       return [compiled = std::shared_ptr(graph.compile(target))](
                                                  const Tensors &inputs) { return compiled->run(inputs); };
                                     },
                                     {target == "native" ? 1u : 2u});
      INFO(different);
      CHECK(different.empty());
    }
  }

private:
  const Row &row;
};

struct Registered {
  Registered() {
    for (const Row *row : allRows())
      Catch::AutoReg(new RowCase(*row), CATCH_INTERNAL_LINEINFO, "", Catch::NameAndTags("op: " + row->op, "[op]"));
  }
} registered;

} // namespace

TEST_CASE("Every op has a row") {
  std::set<std::string> tried;
  for (const Row *row : allRows())
    CHECK(tried.insert(row->op).second);
  for (const ir::OpInfo &info : ir::opTable()) {
    INFO(info.name);
    CHECK(tried.count(info.name) == !info.internal);
  }
}
