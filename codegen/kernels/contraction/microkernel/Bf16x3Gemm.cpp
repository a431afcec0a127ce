#include "codegen/kernels/contraction/microkernel/Bf16x3Gemm.h"
#include "codegen/emit/KernelEmitters.h"
#include "passes/TargetIndependent.h"

using namespace mlir;

namespace burin::codegen {
namespace {

constexpr int64_t kLanes = 16, kTileRows = 16, kDepth = 32, kTerms = 3;
constexpr int64_t kTileBytes = 1024, kTileRowBytes = 64;
// Words of a tile; of all terms of a tile.
constexpr int64_t kTileWords = kTileBytes / 4, kBlockWords = kTerms * kTileWords;
constexpr int64_t kPerSide = Bf16x3Gemm::kSide / kTileRows;
constexpr int64_t kPanelWords = kPerSide * kBlockWords; // words of a block of a panel
/// Pairs (term of the left operand, term of the right one), smallest products first. Consecutive pairs share a term, so
/// that only one operand is reloaded.
constexpr std::pair<int64_t, int64_t> kProducts[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};

Value splat(KernelBuilder &k, uint32_t bits) {
  auto type = VectorType::get({kLanes}, k.b.getI32Type());
  return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(type, APInt(32, bits)));
}
Value bitsOf(KernelBuilder &k, Value floats) {
  return arith::BitcastOp::create(k.b, k.loc, VectorType::get({kLanes}, k.b.getI32Type()), floats);
}
Value floatsOf(KernelBuilder &k, Value bits) {
  return arith::BitcastOp::create(k.b, k.loc, VectorType::get({kLanes}, k.b.getF32Type()), bits);
}

/// Rounds f32 to 8 bits of mantissa, those of a bf16; halves are rounded away from 0.
Value rounded(KernelBuilder &k, Value x) {
  Value up = arith::AddIOp::create(k.b, k.loc, bitsOf(k, x), splat(k, 0x8000));
  return floatsOf(k, arith::AndIOp::create(k.b, k.loc, up, splat(k, 0xffff0000)));
}

/// Stores the terms of vectors x and y to rows of `kTerms` tiles, the first at word `at`. A word holds a term of x in
/// its lower and a term of y in its upper half.
void storeTerms(KernelBuilder &k, const Memory &words, Value at, Value x, Value y) {
  for (int64_t term = 0; term < kTerms; ++term) {
    bool isLast = term + 1 == kTerms; // the rest has at most 8 bits
    Value low = isLast ? x : rounded(k, x), high = isLast ? y : rounded(k, y);
    Value below = arith::ShRUIOp::create(k.b, k.loc, bitsOf(k, low), splat(k, 16));
    Value word = arith::OrIOp::create(k.b, k.loc, below, bitsOf(k, high));
    k.store(words, {k.add(at, k.constant(term * kTileWords)), 1}, word, kLanes, {});
    if (isLast)
      return;
    x = arith::SubFOp::create(k.b, k.loc, x, low);
    y = arith::SubFOp::create(k.b, k.loc, y, high);
  }
}

/// Returns NaN for finite values that cannot be split into three normal bf16 terms. Infinities and NaN split into
/// non-finite terms, so every value that cannot be split yields a non-finite sum, which `areFinite` detects.
Value withTerms(KernelBuilder &k, Value x) {
  constexpr uint32_t least = 0x25800000, nan = 0x7fc00000; // 2^-52
  // Without the sign; 0 does not count as small.
  Value one = splat(k, 1), twice = arith::ShLIOp::create(k.b, k.loc, bitsOf(k, x), one);
  Value isSmall = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult,
                                        arith::SubIOp::create(k.b, k.loc, twice, one), splat(k, 2 * least - 1));
  return arith::SelectOp::create(k.b, k.loc, isSmall, floatsOf(k, splat(k, nan)), x);
}

Value byteConstant(KernelBuilder &k, int64_t n) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI8Type(), n); }

void intrinsic(KernelBuilder &k, llvm::StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getStringAttr(("llvm.x86." + name).str()), operands);
}

} // namespace

Bf16x3Gemm::Bf16x3Gemm(KernelBuilder &k, Memory left, Memory right, int64_t depth, int64_t squares, int64_t panels)
    : k(k), left{left.pointer, DType::i32, {}}, right{right.pointer, DType::i32, {}}, kept{k.scratch, DType::f32, {}},
      blocks(llvm::divideCeil(depth, kDepth)), squares(squares) {
  int64_t blockBytes = squares * kPanelWords * 4;
  strips = llvm::divideCeil(blocks, std::max<int64_t>(passes::kStripBytes / blockBytes, 1));
  stripBlocks = llvm::divideCeil(blocks, strips);
  keptSquares = strips > 1 ? squares * panels : 1;
  configuration = {k.elementPointer(kept, k.constant(keptSquares * kSide * kSide)), DType::i32, {}};
}

int64_t Bf16x3Gemm::scratchBytes() const { return keptSquares * kSide * kSide * 4 + kTileRowBytes; }

void Bf16x3Gemm::begin() {
  // Tile configuration: palette 1; 64 bytes per row (16 bits each) and 16 rows (bytes) for each of the 8 tiles.
  uint32_t words[16] = {1};
  for (int i = 0; i < 4; ++i)
    words[4 + i] = kTileRowBytes << 16 | kTileRowBytes;
  for (int i = 0; i < 2; ++i)
    words[12 + i] = kTileRows * 0x01010101;
  auto type = VectorType::get({kLanes}, k.b.getI32Type());
  Value all = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(type, llvm::ArrayRef<uint32_t>(words)));
  k.store(configuration, {k.constant(0), 1}, all, kLanes, {});
  intrinsic(k, "ldtilecfg", configuration.pointer);
}

void Bf16x3Gemm::end() { intrinsic(k, "tilerelease", {}); }

void Bf16x3Gemm::tile(llvm::StringRef instruction, llvm::ArrayRef<int64_t> registers) {
  intrinsic(k, instruction, llvm::map_to_vector(registers, [&](int64_t r) { return byteConstant(k, r); }));
}
void Bf16x3Gemm::move(llvm::StringRef instruction, int64_t tile, const Memory &memory, Value at, int64_t rowBytes) {
  intrinsic(k, instruction, {byteConstant(k, tile), k.elementPointer(memory, at), k.constant(rowBytes)});
}

// Tile registers: 0 to 3 are the sums, 4 and 5 the two tiles of the left operand, 6 and 7 those of the right one.
void Bf16x3Gemm::addBlock(Value leftAt, Value rightAt, llvm::function_ref<void(int64_t group)> beside) {
  auto load = [&](int64_t first, const Memory &memory, Value at, int64_t apart) {
    for (int64_t i = 0; i < kPerSide; ++i)
      move("tileloadd64", first + i, memory, k.add(at, k.constant(i * apart)), kTileRowBytes);
  };
  int64_t inLeft = -1, inRight = -1;
  for (auto [group, pair] : llvm::enumerate(kProducts)) {
    auto [l, r] = pair;
    if (l != inLeft)
      load(4, left, k.add(leftAt, k.constant((inLeft = l) * kTileWords)), blocks * kTerms * kTileWords);
    if (r != inRight)
      load(6, right, k.add(rightAt, k.constant((inRight = r) * kPerSide * kTileWords)), kTileWords);
    for (int64_t i = 0; i < kPerSide; ++i)
      for (int64_t j = 0; j < kPerSide; ++j)
        tile("tdpbf16ps", {i * kPerSide + j, 4 + i, 6 + j});
    beside(int64_t(group));
  }
}

Value Bf16x3Gemm::panelAt(Value panel) { return k.mul(panel, k.constant(blocks * kPanelWords)); }

/// Position of the sums of a square.
Value Bf16x3Gemm::placeOf(Value square, Value number) {
  if (strips == 1)
    return k.constant(0);
  return k.mul(k.add(k.mul(number, k.constant(squares)), square), k.constant(kSide * kSide));
}

void Bf16x3Gemm::moveSums(llvm::StringRef instruction, Value place) {
  for (int64_t i = 0; i < kPerSide; ++i)
    for (int64_t j = 0; j < kPerSide; ++j)
      move(instruction, i * kPerSide + j, kept, k.add(place, k.constant(i * kTileRows * kSide + j * kLanes)),
           kSide * 4);
}

void Bf16x3Gemm::multiply(Value strip, Value row, Value panel, Value square, Value number) {
  constexpr int64_t perLine = kLineBytes / 4, groups = std::size(kProducts);
  Value place = placeOf(square, number);
  auto clear = [&] {
    for (int64_t sum = 0; sum < kPerSide * kPerSide; ++sum)
      tile("tilezero", {sum});
  };
  if (strips > 1) {
    Value isFirst = k.compare(arith::CmpIPredicate::eq, strip, k.constant(0));
    k.when(isFirst, clear);
    k.unless(isFirst, [&] { moveSums("tileloadd64", place); });
  } else {
    clear();
  }
  // Share of this square of each block of the next panel.
  int64_t lines = llvm::divideCeil(kPanelWords / perLine, squares);
  Value next = k.add(panelAt(k.add(panel, k.constant(1))), k.mul(square, k.constant(lines * perLine)));
  Value leftAt = k.mul(k.div(row, k.constant(kTileRows)), k.constant(blocks * kTerms * kTileWords));
  Value from = k.mul(strip, k.constant(stripBlocks));
  Value to = k.minimum(k.add(from, k.constant(stripBlocks)), k.constant(blocks));
  k.loop(from, to, k.constant(1), [&](Value block) {
    Value before = k.mul(block, k.constant(kPanelWords)), here = k.add(panelAt(panel), before);
    auto fetch = [&](Value from, int64_t count, int64_t group, int64_t locality) {
      for (int64_t line = count * group / groups; line < count * (group + 1) / groups; ++line) {
        Value at = k.elementPointer(right, k.add(from, k.constant(line * perLine)));
        LLVM::Prefetch::create(k.b, k.loc, at, 0, locality, 1);
      }
    };
    addBlock(k.add(leftAt, k.mul(block, k.constant(kTerms * kTileWords))), here, [&](int64_t group) {
      fetch(k.add(here, k.constant(kPanelWords)), kPanelWords / perLine, group, 3);
      fetch(k.add(next, before), lines, group, 2);
    });
  });
  moveSums("tilestored64", place);
}

Value Bf16x3Gemm::sums(Value square, Value number, Value row, int64_t vector) {
  Value at = k.add(k.mul(row, k.constant(kSide)), k.constant(vector * kLanes));
  return k.load(kept, {k.add(placeOf(square, number), at), 1}, kLanes, {});
}

Value Bf16x3Gemm::columns(Value panel, Value step, int64_t vector) {
  Value block = k.div(step, k.constant(kDepth)), rest = k.rem(step, k.constant(kDepth));
  Value isHigh = k.compare(arith::CmpIPredicate::sge, rest, k.constant(kDepth / 2));
  Value row = k.rem(rest, k.constant(kDepth / 2));
  Value at = k.add(k.add(panelAt(panel), k.mul(block, k.constant(kPanelWords))),
                   k.add(k.mul(row, k.constant(kLanes)), k.constant(vector * kTileWords)));
  Value sum;
  for (int64_t term = kTerms; term-- > 0;) { // exact: no partial sum has more bits than the result
    Value words = k.load(right, {k.add(at, k.constant(term * kPerSide * kTileWords)), 1}, kLanes, {});
    Value low = arith::ShLIOp::create(k.b, k.loc, words, splat(k, 16));
    Value high = arith::AndIOp::create(k.b, k.loc, words, splat(k, 0xffff0000));
    Value x = floatsOf(k, arith::SelectOp::create(k.b, k.loc, isHigh, high, low));
    sum = sum ? Value(arith::AddFOp::create(k.b, k.loc, sum, x)) : x;
  }
  return sum;
}

Value Bf16x3Gemm::areFinite(llvm::ArrayRef<Value> sums) {
  Value most = splat(k, 0);
  for (Value sum : sums) {
    Value twice = arith::ShLIOp::create(k.b, k.loc, bitsOf(k, sum), splat(k, 1)); // without the sign
    most = arith::MaxUIOp::create(k.b, k.loc, most, twice);
  }
  constexpr uint32_t infinity = 0x7f800000;
  Value isFinite = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, most, splat(k, 2 * infinity));
  return vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::AND, isFinite);
}

LaunchShape emitBf16Split(const KernelEmission &kernel) {
  KernelBuilder &k = kernel.e.k;
  ir::Bf16TermsOp op = *kernel.body.getOps<ir::Bf16TermsOp>().begin();
  Memory matrix = *kernel.e.memoryOf(passes::skipReshapes(op.getX()));
  Shape shape = ir::shapeOf(op.getX());
  Dim rows = shape[0];
  int64_t depth = shape[1].value(), blocks = llvm::divideCeil(depth, kDepth);
  Memory words{kernel.results[0], DType::i32, {}};
  k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
    k.loop(k.constant(0), k.constant(kTileRows), k.constant(1), [&](Value row) {
      Value last = k.sub(k.dim(rows), k.constant(1)), at = k.add(k.mul(task, k.constant(kTileRows)), row);
      Value start = k.mul(k.minimum(at, last), k.constant(depth));
      auto split = [&](Value block, bool isCut) {
        auto half = [&](int64_t from) {
          Value step = k.add(k.mul(block, k.constant(kDepth)), k.constant(from));
          Value mask = isCut ? k.below(step, k.constant(depth), kLanes) : Value();
          return withTerms(k, k.load(matrix, {k.add(start, step), 1}, kLanes, mask));
        };
        Value to = k.mul(k.add(k.mul(task, k.constant(blocks)), block), k.constant(kBlockWords));
        storeTerms(k, words, k.add(to, k.mul(row, k.constant(kLanes))), half(0), half(kDepth / 2));
      };
      k.loop(k.constant(0), k.constant(depth / kDepth), k.constant(1), [&](Value block) { split(block, false); });
      if (depth % kDepth)
        split(k.constant(blocks - 1), true);
    });
  });
  return {ceildiv(rows, Bf16x3Gemm::kSide) * kPerSide, 0}; // a task is a row of tiles
}

} // namespace burin::codegen
