// One case per op of the table: `ops-tests "op: matmul"`; with other operands: `--rng-seed 77`.
#include "codegen/target/Target.h"
#include "runtime/format/Target.h"
#include "test/ops/Row.h"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

using namespace burin;
using namespace burin::test;

namespace {

uint64_t seed() {
  const uint64_t given = Catch::rngSeed();
  return given ? given : 20240;
}

/// The targets that each row runs on: `native` and the smallest; with BURIN_LONG_TESTS all that this machine supports.
std::vector<std::string> targets() {
  std::vector<std::string> names{"native"};
  const std::string native = codegen::findTarget("native")->name;
  for (const codegen::Target &target : codegen::allTargets())
    if (target.name != native && rt::targetRank(target.name) >= 0 &&
        (target.name == std::string("x86-64-v3") || std::getenv("BURIN_LONG_TESTS")))
      names.emplace_back(target.name);
  return names;
}

class RowCase : public Catch::ITestInvoker {
public:
  explicit RowCase(const Row &row) : row(row) {}
  void invoke() const override {
    for (const std::string &target : targets()) {
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
