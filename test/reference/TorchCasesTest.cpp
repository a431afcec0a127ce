// Compares the interpreter with PyTorch's results; see make_torch_cases.py.
#include "ir/reference/ReferenceOp.h"
#include "test/reference/Harness.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <catch2/catch.hpp>
#include <set>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;
namespace json = llvm::json;

namespace {

DType dtypeNamed(llvm::StringRef text) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (name(DType(i)) == std::string_view(text))
      return DType(i);
  FAIL("unknown element type " << text.str());
  return f32;
}

double realOf(const json::Value &v) {
  if (auto text = v.getAsString())
    return std::stod(text->str());
  return *v.getAsNumber();
}

std::vector<int64_t> intsOf(const json::Value &v) {
  std::vector<int64_t> ints;
  for (const json::Value &e : *v.getAsArray())
    ints.push_back(*e.getAsInteger());
  return ints;
}

RefTensor tensorOf(const json::Value &v) {
  const json::Array &parts = *v.getAsArray();
  RefTensor t = RefTensor::zeros(dtypeNamed(*parts[0].getAsString()), intsOf(parts[1]));
  const json::Array &elements = *parts[2].getAsArray();
  REQUIRE(int64_t(elements.size()) == t.size());
  for (size_t i = 0; i < elements.size(); ++i)
    if (isFloat(t.dtype))
      t.reals()[i] = realOf(elements[i]);
    else
      t.ints()[i] = *elements[i].getAsInteger();
  return t;
}

ir::Attr attrOf(const json::Value &v, ir::AttrKind kind) {
  switch (kind) {
  case ir::AttrKind::Bool:
    return *v.getAsBoolean();
  case ir::AttrKind::Int:
    return *v.getAsInteger();
  case ir::AttrKind::Float:
    return realOf(v);
  case ir::AttrKind::String:
    return v.getAsString()->str();
  case ir::AttrKind::Ints:
    return intsOf(v);
  case ir::AttrKind::DType:
    return dtypeNamed(*v.getAsString());
  case ir::AttrKind::Shape:
    break;
  }
  std::vector<int64_t> sizes = intsOf(v);
  return Shape(sizes.begin(), sizes.end());
}

Attrs attrsOf(const std::string &op, const json::Object &object) {
  Attrs attrs;
  for (const ir::AttrInfo &info : ir::findOp(op)->attrs)
    if (const json::Value *v = object.get(info.name))
      attrs[info.name] = attrOf(*v, info.kind);
  REQUIRE(attrs.size() == object.size());
  return attrs;
}

/// PyTorch computes 16-bit floats through f32, so the last bit may differ.
double toleranceOf(DType dtype) { return dtype == f16 ? 0x1p-10 : dtype == bf16 ? 0x1p-7 : dtype == f32 ? 1e-6 : 2e-8; }

const json::Array &torchCases() {
  static const json::Value cases = [] {
    auto file = llvm::MemoryBuffer::getFile(BURIN_SOURCE_DIR "/test/reference/torch_cases.json");
    REQUIRE(file);
    auto parsed = json::parse((*file)->getBuffer());
    REQUIRE(bool(parsed));
    return std::move(*parsed);
  }();
  return *cases.getAsArray();
}

} // namespace

namespace {

/// A case in the form of the file.
struct Case {
  std::string op;
  std::vector<RefTensor> tensors;
  std::vector<const RefTensor *> operands;
  Attrs attrs;
  std::vector<RefTensor> expected;

  explicit Case(const json::Array &parts) : op(parts[0].getAsString()->str()) {
    const json::Array &given = *parts[1].getAsArray();
    for (const json::Value &operand : given) // null is an absent optional operand
      tensors.push_back(operand.getAsArray() ? tensorOf(operand) : RefTensor());
    for (size_t i = 0; i < tensors.size(); ++i)
      operands.push_back(given[i].getAsArray() ? &tensors[i] : nullptr);
    attrs = attrsOf(op, *parts[2].getAsObject());
    for (const json::Value &result : *parts[3].getAsArray())
      expected.push_back(tensorOf(result));
  }
};

std::string describe(const json::Array &parts) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << parts[0] << " " << parts[2];
  for (const json::Value &operand : *parts[1].getAsArray())
    if (const json::Array *tensor = operand.getAsArray())
      out << " " << (*tensor)[0] << (*tensor)[1];
  return text;
}

} // namespace

TEST_CASE("ops compute what PyTorch computes") {
  for (const json::Value &value : torchCases()) {
    INFO(describe(*value.getAsArray()));
    Case c(*value.getAsArray());
    Outcome outcome = evaluateOp(c.op, c.operands, c.attrs);
    CHECK(outcome.error == "");
    if (!outcome.ok())
      continue;
    REQUIRE(outcome.results.size() == c.expected.size());
    for (size_t i = 0; i < c.expected.size(); ++i)
      CHECK(difference(outcome.results[i], c.expected[i], toleranceOf(c.expected[i].dtype)) == "");
  }
}

TEST_CASE("constants fold to the bytes that evaluation gives") {
  for (const json::Value &value : torchCases()) {
    INFO(describe(*value.getAsArray()));
    Case c(*value.getAsArray());
    std::vector<std::vector<char>> evaluated;
    for (const RefTensor &result : evaluateOp(c.op, c.operands, c.attrs).results)
      evaluated.push_back(result.toBytes());
    CHECK(foldedBytes(c.op, c.operands, c.attrs) == evaluated);
  }
}

TEST_CASE("every op of the table has a reference and, where PyTorch knows it, a case") {
  std::set<std::string> covered;
  for (const json::Value &value : torchCases())
    covered.insert((*value.getAsArray())[0].getAsString()->str());
  // Ops that PyTorch does not have, or random ones: tested elsewhere.
  const std::set<std::string> own{
      "contract",   "pack",      "iota",           "full",   "random_uniform", "random_normal",       "random_integers",
      "random_key", "bernoulli", "reduce_average", "prefix", "nonzero",        "non_max_suppression", "reduce_max_num",
      "bf16_pairs", "fma",       "bf16_terms",     "check",  "barrier",        "attention_gradient"};
  for (const ir::OpInfo &info : ir::opTable()) {
    INFO(info.name);
    CHECK(ir::findReferenceKernel(info.name));
    CHECK(covered.count(info.name) + own.count(info.name) == 1);
  }
}
