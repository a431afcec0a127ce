// One case per op of the table: `ops-tests "op: matmul"`.
#include "test/ops/Row.h"
#include <catch2/catch.hpp>
#include <set>

using namespace burin;
using namespace burin::test;

namespace {

constexpr uint64_t kSeed = 20240;

/// Every third op is also compiled for the smaller target, whatever the native one is.
bool isShared(std::string_view op) { return (op.size() + op.front() + op.back()) % 3 == 0; }

class RowCase : public Catch::ITestInvoker {
public:
  explicit RowCase(const Row &row) : row(row) {}
  void invoke() const override {
    for (const char *target : {"native", "x86-64-v3"})
      if (target == std::string_view("native") || isShared(row.op)) {
        std::string different = tryRow(row, target, kSeed, [&](Graph &graph) -> Runner {
          return [compiled = std::shared_ptr(graph.compile(target))](const Tensors &inputs) {
            return compiled->run(inputs);
          };
        });
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
