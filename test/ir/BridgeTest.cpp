// Conversions between MLIR and the op table: types, attributes, constants, bytecode.
#include "ir/dialect/Burin.h"
#include "ir/dialect/GraphVersion.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/ir/Generator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include <catch2/catch.hpp>
#include <numeric>

using namespace burin;
using namespace burin::ir;
using Catch::Matchers::Contains;

namespace {
struct Fixture {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder builder{&context};
  mlir::Location loc{mlir::UnknownLoc::get(&context)};
  std::string diagnostics;

  Fixture() {
    loadDialects(context);
    module = mlir::ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) { diagnostics += d.str() + "\n"; });
  }
};

std::vector<char> someBytes(size_t n) {
  std::vector<char> bytes(n);
  std::iota(bytes.begin(), bytes.end(), char(1));
  return bytes;
}

std::vector<char> bytesOf(ConstantOp op) {
  std::vector<char> storage;
  auto bytes = constantBytes(op.getValue(), storage);
  return {bytes.begin(), bytes.end()};
}
} // namespace

TEST_CASE_METHOD(Fixture, "types and specs convert both ways") {
  Dim b("b");
  for (int type = 0; type < kNumDTypes; ++type)
    for (Shape shape : {Shape{}, Shape{2, 0}, Shape{b, 3, b * 2 + 1}}) {
      TensorSpec spec{DType(type), shape};
      CHECK(specOf(tensorType(&context, spec)) == spec);
    }
  std::string error;
  CHECK_FALSE(trySpecOf(builder.getI32Type(), error));
  CHECK_FALSE(trySpecOf(mlir::RankedTensorType::get({2}, mlir::IntegerType::get(&context, 3)), error));
  CHECK_FALSE(trySpecOf(mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, builder.getF32Type()), error));
  CHECK_THAT(error, Contains("1 unknown sizes `?` but 0 expressions"));
}

TEST_CASE_METHOD(Fixture, "attributes convert both ways") {
  for (Attr attr : {Attr(true), Attr(int64_t(-3)), Attr(0.5), Attr(std::string("nhwc")),
                    Attr(std::vector<int64_t>{1, -2}), Attr(bf16), Attr(Shape{2, Dim("b") + 1})}) {
    auto back = fromMlir(toMlir(&context, attr), AttrKind(attr.index()));
    REQUIRE(back);
    CHECK(*back == attr);
    CHECK_FALSE(fromMlir(toMlir(&context, attr), AttrKind((attr.index() + 1) % 7)));
  }
}

TEST_CASE_METHOD(Fixture, "constants keep every byte, small and large, of every type") {
  for (int type = 0; type < kNumDTypes; ++type)
    for (int64_t n : {0, 1, 5, 1000}) {
      DType dtype = DType(type);
      std::vector<char> bytes = someBytes(n * byteWidth(dtype));
      if (isBool(dtype))
        for (char &byte : bytes)
          byte &= 1;
      auto constant = createConstant(builder, loc, {dtype, {n}}, bytes).getDefiningOp<ConstantOp>();
      INFO(name(dtype) << " " << n);
      CHECK(bytesOf(constant) == bytes);
    }
  std::vector<char> ones(64, 1);
  CHECK(bytesOf(createConstant(builder, loc, {boolean, {64}}, ones).getDefiningOp<ConstantOp>()) == ones);
  CHECK(mlir::succeeded(mlir::verify(*module)));
}

TEST_CASE("a constant with an owner is not copied, and lets go of it with the context") {
  auto owner = std::make_shared<std::vector<char>>(someBytes(4096));
  {
    Fixture f;
    auto constant =
        createConstant(f.builder, f.loc, {f32, {1024}}, *owner, "weight", owner).getDefiningOp<ConstantOp>();
    std::vector<char> storage;
    CHECK(constantBytes(constant.getValue(), storage).data() == owner->data());
    CHECK(owner.use_count() == 2);
  }
  CHECK(owner.use_count() == 1);
}

TEST_CASE_METHOD(Fixture, "a module with weights survives bytecode") {
  std::vector<char> bytes = someBytes(4000);
  createConstant(builder, loc, {f32, {10, 100}}, bytes, "weight");
  createConstant(builder, loc, {boolean, {3}}, std::vector<char>{1, 0, 1});
  create<FullOp>(builder, loc, {}, {{"shape", Shape{Dim("b"), 4}}, {"value", 2.0}, {"dtype", f16}});
  std::string buffer;
  llvm::raw_string_ostream os(buffer);
  REQUIRE(mlir::succeeded(mlir::writeBytecodeToFile(*module, os)));

  Fixture other;
  // Bytecode is read in place, so its buffer must have the alignment that the resources declare.
  auto aligned = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(os.str().size(), "graph", llvm::Align(64));
  llvm::copy(os.str(), aligned->getBufferStart());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(aligned), llvm::SMLoc());
  auto read = mlir::parseSourceFile<mlir::ModuleOp>(sources, &other.context);
  REQUIRE(read);
  auto constants = llvm::to_vector(read->getOps<ConstantOp>());
  REQUIRE(constants.size() == 2);
  CHECK(bytesOf(constants[0]) == bytes);
  CHECK(constants[0].getName() == "weight");
  CHECK(bytesOf(constants[1]) == std::vector<char>{1, 0, 1});
  auto full = *read->getOps<FullOp>().begin();
  CHECK(str(specOf(full.getResult())) == "f16[b, 4]");
}

TEST_CASE_METHOD(Fixture, "a graph of a newer version is refused") {
  createConstant(builder, loc, {f32, {1}}, someBytes(4));
  mlir::BytecodeWriterConfig config;
  config.setDialectVersion<BurinDialect>(std::make_unique<GraphVersion>(GraphVersion::kCurrent + 1));
  std::string buffer;
  llvm::raw_string_ostream os(buffer);
  REQUIRE(mlir::succeeded(mlir::writeBytecodeToFile(*module, os, config)));
  CHECK_FALSE(mlir::parseSourceString<mlir::ModuleOp>(os.str(), &context));
  CHECK_THAT(diagnostics, Contains("saved by a newer burin: its version is 2, this one reads up to 1"));
}

TEST_CASE_METHOD(Fixture, "createOp infers, places optional operands, and reports") {
  mlir::Value x = create<FullOp>(builder, loc, {}, {{"shape", Shape{2, 8}}, {"value", 1.0}, {"dtype", f32}});
  mlir::Value bias = create<FullOp>(builder, loc, {}, {{"shape", Shape{8}}, {"value", 0.0}, {"dtype", f32}});
  mlir::Operation *norm = createOp(builder, loc, *findOp("layer_norm"), {x, {}, bias}, {int64_t(1), 1e-5});
  REQUIRE(norm);
  auto operands = operandsOf(norm);
  REQUIRE(operands.size() == 3);
  CHECK(operands[0] == x);
  CHECK_FALSE(operands[1]);
  CHECK(operands[2] == bias);
  CHECK(attrsOf(norm) == std::vector<Attr>{int64_t(1), 1e-5});
  CHECK(mlir::succeeded(mlir::verify(*module)));

  CHECK_FALSE(createOp(builder, loc, *findOp("matmul"), {x, x}, {}));
  CHECK_THAT(diagnostics, Contains("matmul: lhs f32[2, 8] and rhs f32[2, 8] do not multiply"));
}

TEST_CASE_METHOD(Fixture, "uniform values are seen through movement and rounding") {
  auto full = [&](double value, DType dtype) {
    return create<FullOp>(builder, loc, {}, {{"shape", Shape{1}}, {"value", value}, {"dtype", dtype}});
  };
  mlir::Value moved = create<BroadcastToOp>(builder, loc, {full(0.1, f16)}, {{"shape", Shape{Dim("b"), 4}}});
  CHECK(uniformValue(moved) == 0.0999755859375);
  CHECK(uniformValue(full(-0.0, f32)) == 0.0);
  CHECK(std::signbit(*uniformValue(full(-0.0, f32))));
  CHECK(uniformValue(full(7, i8)) == 7);
  CHECK_FALSE(uniformValue(full(2.5, i8)));
  CHECK_FALSE(uniformValue(full(300, i8)));
  CHECK(uniformValue(createConstant(builder, loc, {u8, {2}}, std::vector<char>{char(200), char(200)})) == 200);
  CHECK_FALSE(uniformValue(createConstant(builder, loc, {u8, {2}}, std::vector<char>{1, 2})));
}

TEST_CASE_METHOD(Fixture, "the innermost file location names the line") {
  auto file = mlir::FileLineColLoc::get(&context, "model.cpp", 12, 3);
  CHECK(fileLine(mlir::NameLoc::get(builder.getStringAttr("layer"), file)) == "model.cpp:12 (module layer)");
  CHECK(fileLine(mlir::FusedLoc::get(&context, {loc, file})) == "model.cpp:12");
  CHECK(fileLine(loc) == "");
}

TEST_CASE_METHOD(Fixture, "types outside of burin ops are checked on request") {
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>("func.func @f(%x: tensor<?xf32>) { return }", &context);
  REQUIRE(parsed);
  CHECK(mlir::failed(verifyTensorTypes(*parsed)));
  CHECK_THAT(diagnostics, Contains("argument type 'tensor<?xf32>' has 1 unknown sizes"));
}

TEST_CASE_METHOD(Fixture, "the verifier accepts what inference accepts") {
  test::Generator g(7);
  std::vector<InferCall> calls;
  for (int round = 0; round < 40; ++round)
    for (const OpInfo &info : opTable())
      calls.push_back(test::randomCall(g, info));
  for (const InferCall &valid : test::validCalls())
    for (int round = 0; round < 100; ++round)
      test::mutate(g, calls.emplace_back(valid));
  size_t created = 0;
  for (InferCall &call : calls) {
    if (!infer(call))
      continue;
    llvm::SmallVector<mlir::Value> operands;
    for (auto &spec : call.operands) {
      auto value = [&](mlir::Type type) {
        return mlir::UnrealizedConversionCastOp::create(builder, loc, type, mlir::ValueRange()).getResult(0);
      };
      operands.push_back(spec ? value(tensorType(&context, *spec)) : mlir::Value());
    }
    INFO(call.info.name);
    mlir::Operation *op = createOp(builder, loc, call.info, operands, call.attrs);
    INFO(diagnostics);
    REQUIRE(op);
    REQUIRE(mlir::succeeded(mlir::verify(op)));
    REQUIRE(attrsOf(op) == call.attrs);
    REQUIRE(operandsOf(op) == operands);
    ++created;
  }
  CHECK(created > 500);
  // The text form includes the constants.
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  CHECK(mlir::parseSourceString<mlir::ModuleOp>(text, &context));
}
