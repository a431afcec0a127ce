#include "test/ops/TileLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "runtime/format/Archive.h"
#include <stdexcept>

using namespace mlir;

namespace burin::test {
namespace {

constexpr int64_t kTiles = 8, kRows = 16, kRowBytes = 64, kLanes = 16, kPairs = 16;

/// Emits the loops of one tile operation.
class TileLoops {
public:
  TileLoops(LLVM::CallIntrinsicOp op, Value tiles) : op(op), b(op), loc(op.getLoc()), tiles(tiles) {
    words = VectorType::get({kLanes}, b.getI32Type());
    floats = VectorType::get({kLanes}, b.getF32Type());
  }

  void emit() {
    const StringRef name = op.getIntrin();
    if (name == "llvm.x86.tilezero")
      rows(kRows, [&](Value row) { store(zero(words), rowOf(0, row)); });
    else if (name == "llvm.x86.tileloadd64")
      rows(kRows, [&](Value row) { store(load(words, memoryOf(row)), rowOf(0, row)); });
    else if (name == "llvm.x86.tilestored64")
      rows(kRows, [&](Value row) { store(load(words, rowOf(0, row)), memoryOf(row)); });
    else if (name == "llvm.x86.tdpbf16ps")
      rows(kRows, [&](Value row) { addProducts(row); });
    else if (name != "llvm.x86.ldtilecfg" && name != "llvm.x86.tilerelease")
      throw std::runtime_error("no loops for " + name.str());
  }

private:
  LLVM::CallIntrinsicOp op;
  OpBuilder b;
  Location loc;
  Value tiles;
  VectorType words, floats;

  Value zero(VectorType type) { return arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type)); }
  Value number(int64_t n) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n)); }
  Value times(Value x, int64_t n) { return arith::MulIOp::create(b, loc, x, number(n)); }
  Value at(Value base, Value bytes) {
    return LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base, ValueRange{bytes});
  }
  /// A row of the tile that operand `i` names.
  Value rowOf(unsigned i, Value row) {
    APInt tile;
    if (!matchPattern(op.getArgs()[i], m_ConstantInt(&tile)))
      throw std::runtime_error("a tile is not a constant");
    return at(tiles, arith::AddIOp::create(b, loc, times(row, kRowBytes),
                                           number(int64_t(tile.getZExtValue()) * kRows * kRowBytes)));
  }
  Value memoryOf(Value row) { return at(op.getArgs()[1], arith::MulIOp::create(b, loc, row, op.getArgs()[2])); }
  Value load(Type type, Value from) { return LLVM::LoadOp::create(b, loc, type, from, /*alignment=*/4); }
  void store(Value x, Value to) { LLVM::StoreOp::create(b, loc, x, to, /*alignment=*/4); }

  template <class F> void rows(int64_t count, F body) {
    auto loop = scf::ForOp::create(b, loc, number(0), number(count), number(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// The lower halves of words, or the upper ones, as f32.
  Value halves(Value x, bool isUpper) {
    auto all = [&](int32_t n) -> Value { return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words, n)); };
    Value bits = isUpper ? Value(arith::AndIOp::create(b, loc, x, all(int32_t(0xffff0000))))
                         : Value(arith::ShLIOp::create(b, loc, x, all(16)));
    return arith::BitcastOp::create(b, loc, floats, bits);
  }

  void addProducts(Value row) {
    auto loop =
        scf::ForOp::create(b, loc, number(0), number(kPairs), number(1), ValueRange{zero(floats), zero(floats)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value pair = loop.getInductionVar();
      Value left = vector::BroadcastOp::create(b, loc, words, load(b.getI32Type(), at(rowOf(1, row), times(pair, 4))));
      Value right = load(words, rowOf(2, pair));
      llvm::SmallVector<Value> sums;
      for (bool isUpper : {false, true})
        sums.push_back(math::FmaOp::create(b, loc, halves(left, isUpper), halves(right, isUpper),
                                           loop.getRegionIterArgs()[isUpper]));
      scf::YieldOp::create(b, loc, sums);
    }
    Value sum = arith::AddFOp::create(b, loc, loop.getResult(0), loop.getResult(1)), place = rowOf(0, row);
    store(arith::AddFOp::create(b, loc, load(floats, place), sum), place);
  }
};

} // namespace

bool expandTileOps(ModuleOp code) {
  llvm::DenseMap<Operation *, Value> tilesOf; // by function
  llvm::SmallVector<LLVM::CallIntrinsicOp> ops;
  code.walk([&](LLVM::CallIntrinsicOp op) {
    if (op.getIntrin().starts_with("llvm.x86.t") || op.getIntrin() == "llvm.x86.ldtilecfg")
      ops.push_back(op);
  });
  for (LLVM::CallIntrinsicOp op : ops) {
    auto function = op->getParentOfType<FunctionOpInterface>();
    Value &tiles = tilesOf[function];
    if (!tiles) {
      OpBuilder b = OpBuilder::atBlockBegin(&function.getFunctionBody().front());
      Value size = LLVM::ConstantOp::create(b, op.getLoc(), b.getI64IntegerAttr(kTiles * kRows * kRowBytes));
      tiles = LLVM::AllocaOp::create(b, op.getLoc(), LLVM::LLVMPointerType::get(b.getContext()), b.getI8Type(), size,
                                     /*alignment=*/64);
    }
    TileLoops(op, tiles).emit();
    op->erase();
  }
  return !ops.empty();
}

std::vector<std::byte> forTarget(const std::vector<std::byte> &artifact, const char *target) {
  rt::ArtifactView view;
  if (rt::Status status = rt::parseArtifact(artifact, rt::WeightCheck::Verify, view); !status.ok())
    throw std::runtime_error(status.message());
  view.artifact.codes.front().target = target;
  std::vector<std::vector<std::byte>> images;
  for (rt::Bytes image : view.code)
    images.emplace_back(image.begin(), image.end());
  return rt::writeArtifact(view.artifact, images, view.weights);
}

} // namespace burin::test
