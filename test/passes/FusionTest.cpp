// Which kinds of ops fuse: each kind as consumer of each other one, and the tables that fusion looks up.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/kernels/fusion/MergeRules.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::ir;
using namespace burin::passes;

namespace {

const TensorSpec kImages{DType::f32, {4, 8, 8, 16}};

/// Applies an op of this kind; the result has the shape of x.
mlir::Value applied(FusionKind kind, mlir::OpBuilder &b, mlir::Value x, mlir::Value panels) {
  mlir::Location loc = b.getUnknownLoc();
  using Ints = std::vector<int64_t>;
  switch (kind) {
  case FusionKind::Pointwise:
    return create<ReluOp>(b, loc, {x});
  case FusionKind::Row:
    return create<SoftmaxOp>(b, loc, {x}, {{"axis", int64_t(3)}});
  case FusionKind::Movement:
    return create<FlipOp>(b, loc, {x}, {{"axes", Ints{3}}});
  case FusionKind::Window:
    return create<MaxPoolOp>(b, loc, {x},
                             {{"kernel", Ints{3, 3}},
                              {"strides", Ints{1, 1}},
                              {"padding", Ints{1, 1, 1, 1}},
                              {"dilations", Ints{1, 1}},
                              {"ceil_mode", false},
                              {"layout", std::string("nhwc")}});
  case FusionKind::Contract:
    return create<ContractOp>(b, loc, {x, panels, {}, {}},
                              {{"batch", int64_t(0)},
                               {"columns", Shape{16}},
                               {"kernel", Ints{1, 1, 1}},
                               {"strides", Ints{1, 1, 1}},
                               {"padding", Ints{0, 0, 0, 0, 0, 0}},
                               {"dilations", Ints{1, 1, 1}}});
  default:
    return create<CumsumOp>(b, loc, {x}, {{"axis", int64_t(3)}});
  }
}

/// Returns the number of kernels for `consumer` after `producer`.
int64_t kernelsOf(FusionKind producer, FusionKind consumer) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  mlir::OpBuilder b(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getUnknownLoc());
  mlir::Type images = tensorType(&context, kImages), panels = tensorType(&context, {DType::f32, {1, 16, 32}});
  b.setInsertionPointToEnd(module->getBody());
  auto function =
      mlir::func::FuncOp::create(b, b.getUnknownLoc(), "main", b.getFunctionType({images, panels}, {images}));
  mlir::Block *body = function.addEntryBlock();
  b.setInsertionPointToEnd(body);
  mlir::Value x = applied(producer, b, body->getArgument(0), body->getArgument(1));
  mlir::func::ReturnOp::create(b, b.getUnknownLoc(), applied(consumer, b, x, body->getArgument(1)));
  mlir::PassManager manager(&context);
  manager.addPass(createFusePass());
  REQUIRE(mlir::succeeded(manager.run(*module)));
  int64_t count = 0;
  module->walk([&](KernelOp) { ++count; });
  return count;
}

} // namespace

TEST_CASE("Each kind of op fuses with those that share its loops") {
  constexpr FusionKind kinds[] = {FusionKind::Pointwise, FusionKind::Row,      FusionKind::Movement,
                                  FusionKind::Window,    FusionKind::Contract, FusionKind::Sequential};
  constexpr int64_t expected[6][6] = {
      // consumer: pointwise, row, movement, window, contract, sequential
      {1, 1, 1, 2, 2, 2}, // producer: pointwise
      {1, 1, 2, 2, 2, 2}, // row
      {1, 1, 1, 2, 2, 2}, // movement
      {1, 2, 2, 2, 2, 2}, // window
      {1, 2, 2, 2, 2, 2}, // contract
      {2, 2, 2, 2, 2, 2}, // sequential
  };
  for (size_t p = 0; p < 6; ++p)
    for (size_t c = 0; c < 6; ++c) {
      INFO("producer " << p << ", consumer " << c);
      CHECK(kernelsOf(kinds[p], kinds[c]) == expected[p][c]);
    }
}

TEST_CASE("The table of merges keeps the rules of groups") {
  for (size_t i = 0; i < kGroupForms; ++i)
    for (size_t j = 0; j < kGroupForms; ++j) {
      INFO(i << ", " << j);
      auto p = GroupForm(i), c = GroupForm(j);
      auto is = [](GroupForm form, std::initializer_list<GroupForm> forms) {
        return std::find(forms.begin(), forms.end(), form) != forms.end();
      };
      bool isStructured = is(p, {GroupForm::Contract, GroupForm::Window});
      bool never = is(p, {GroupForm::Sequential}) || is(c, {GroupForm::Sequential});
      // Only pointwise ops share the loops of contractions and windows.
      never |= isStructured && c != GroupForm::Pointwise;
      never |= is(c, {GroupForm::Contract, GroupForm::Window}) && p != GroupForm::Pointwise;
      CHECK((mergeOf(p, c) == Merge::Never) == never);
      CHECK((mergeOf(p, c) == Merge::IfSameRows) == (isRow(p) && isRow(c)));
      if (mergeOf(p, c) == Merge::Never)
        continue;
      // The joined form contains both parts.
      GroupForm both = joined(p, c);
      CHECK(isRow(both) == (isRow(p) || isRow(c)));
      CHECK(is(both, {GroupForm::Movement, GroupForm::MovedRow}) ==
            (is(p, {GroupForm::Movement, GroupForm::MovedRow}) || is(c, {GroupForm::Movement, GroupForm::MovedRow})));
      CHECK(is(both, {GroupForm::Contract, GroupForm::Window}) ==
            (isStructured || is(c, {GroupForm::Contract, GroupForm::Window})));
      CHECK(joined(c, p) == both);
    }
}

TEST_CASE("Nobody moves elements of what is made in loops of its own") {
  for (size_t i = 0; i < kGroupForms; ++i)
    for (size_t k = 0; k < kFusionKinds; ++k) {
      INFO(i << ", " << k);
      auto form = GroupForm(i);
      auto kind = FusionKind(k);
      bool starts = kind != FusionKind::Pointwise && kind != FusionKind::Row && kind != FusionKind::Movement;
      if (starts || form == GroupForm::Sequential)
        CHECK(linkOf(form, kind) == Link::Never);
      else if (kind == FusionKind::Movement)
        CHECK(linkOf(form, kind) == (hasOwnLoops(form) ? Link::Never : Link::OnlyUser));
    }
}

TEST_CASE("Ops whose elements kernels ask for have a rule for them") {
  struct Rule {
    std::string_view op, rule;
  };
  constexpr Rule rules[] = {
#define OP_RULE(op, rule) {#op, #rule},
#include "codegen/emit/element/ElementRules.inc"
  };
  constexpr OpFacts facts[] = {
#include "passes/analysis/OpFacts.inc"
  };
  REQUIRE(std::size(rules) == opTable().size());
  REQUIRE(std::size(facts) == opTable().size());
  for (size_t i = 0; i < opTable().size(); ++i) {
    INFO(opTable()[i].name);
    CHECK(rules[i].op == opTable()[i].name);
    FusionKind kind = facts[i].fusion;
    bool isMoved = kind == FusionKind::Free || kind == FusionKind::View || kind == FusionKind::Movement;
    if (kind == FusionKind::Window) // these have their own kernel families
      isMoved = rules[i].op != "scaled_dot_product_attention" && rules[i].op != "attention_gradient" &&
                rules[i].op != "bf16_terms";
    CHECK((rules[i].rule != "none") == isMoved);
    CHECK((kind == FusionKind::Pointwise) == opTable()[i].elementwise);
  }
}
