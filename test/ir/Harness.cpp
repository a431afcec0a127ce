#include "test/ir/Harness.h"
#include <catch2/catch.hpp>

namespace burin::test {

std::string Inferred::str() const {
  if (!error.empty())
    return "error: " + error;
  std::string text;
  for (const TensorSpec &r : results)
    text += (text.empty() ? "" : ", ") + burin::str(r);
  return text;
}

Inferred infer(const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs, bool strict) {
  const ir::OpInfo *info = ir::findOp(op);
  REQUIRE(info);
  ir::InferCall call{*info, std::move(operands), {}, strict, {}, {}};
  size_t used = 0;
  for (const ir::AttrInfo &a : info->attrs) {
    auto at = std::find_if(attrs.begin(), attrs.end(), [&](auto &given) { return given.first == a.name; });
    used += at != attrs.end();
    call.attrs.push_back(at == attrs.end() ? a.fallback : at->second);
  }
  REQUIRE(used == attrs.size());
  bool ok = ir::infer(call);
  CHECK(ok == call.error.empty());
  return {ok ? call.results : std::vector<TensorSpec>(), call.operands, call.attrs, call.error};
}

std::string typeOf(const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs) {
  Inferred loose = infer(op, operands, attrs);
  if (!loose.error.empty())
    return loose.str();
  ir::InferCall again{*ir::findOp(op), loose.operands, loose.attrs, /*strict=*/true, {}, {}};
  INFO(op << ": " << loose.str());
  bool ok = ir::infer(again);
  INFO(again.error);
  CHECK(ok);
  bool isVector =
      std::string_view(op) == "matmul" && (operands[0]->shape.size() == 1 || operands[1]->shape.size() == 1);
  if (!isVector)
    CHECK(again.results == loose.results);
  CHECK(again.attrs == loose.attrs);
  return loose.str();
}

} // namespace burin::test
