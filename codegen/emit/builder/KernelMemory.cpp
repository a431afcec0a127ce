// Loads and stores of kernels, and their addresses.
#include "codegen/emit/builder/KernelBuilder.h"
#include "codegen/scalar/base/Scalar.h"

using namespace mlir;

namespace burin::codegen {

/// The type that loads and stores of an element type use: an integer for bool and f16, whose vector loads and stores
/// not every target supports.
Type KernelBuilder::accessType(DType type) {
  if (type == DType::boolean)
    return b.getI8Type();
  return type == DType::f16 ? Type(b.getI16Type()) : storageType(type);
}

Value KernelBuilder::elementPointer(const Memory &memory, Value position) {
  Type type = accessType(memory.dtype);
  auto [rest, offset] = splitConstant(position);
  Value pointer = memory.pointer;
  if (rest)
    pointer = LLVM::GEPOp::create(b, loc, pointer.getType(), type, pointer, rest);
  return offset ? LLVM::GEPOp::create(b, loc, pointer.getType(), type, pointer, constant(offset)) : pointer;
}

/// A copy of `v` that LLVM cannot see through: the result of empty inline assembly.
Value KernelBuilder::opaque(Value v, llvm::StringRef constraints) {
  if (target.isGpu()) // GPUs gain nothing from opaque values
    return v;
  return LLVM::InlineAsmOp::create(b, loc, v.getType(), v, /*asm_string=*/"", constraints, /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None, {}, {})
      .getResult(0);
}

/// Whether LLVM folds the mask to a constant.
bool KernelBuilder::isConstantMask(Value mask) {
  auto known = bounds.find(mask);
  return mask.getDefiningOp<arith::ConstantOp>() ||
         (known != bounds.end() && constantOf(known->second.first) && constantOf(known->second.second));
}

/// A masked load. Without AVX-512, vmaskmov tests only the sign bit of each element of a mask. LLVM 22 simplifies masks
/// by this bit when it selects instructions, and then takes every constant element other than 0 for active: it loads,
/// and keeps, lanes that are masked off. That needs a mask that becomes a constant only there; others have been folded
/// before. It happens if a vector takes several registers and the mask of one of them becomes a constant, so the mask
/// of each register goes through an opaque copy, which takes no instruction (test: "Concats of short pieces under a
/// mask").
Value KernelBuilder::maskedLoad(VectorType type, Value pointer, Value mask, unsigned alignment) {
  constexpr int64_t kAvxBytes = 32; // of a register; targets without AVX test masks by branches
  const int64_t elementBytes = type.getElementTypeBitWidth() / 8, lanes = kAvxBytes / elementBytes;
  const bool isByRegisters = !target.isGpu() && !target.avx512 && target.vectorBytes == kAvxBytes &&
                             type.getNumElements() > lanes && elementBytes >= 4; // a branch tests each narrower element
  if (isByRegisters && !isConstantMask(mask)) {
    auto wide = VectorType::get(type.getShape(), b.getIntegerType(unsigned(8 * elementBytes)));
    Value registers = arith::ExtSIOp::create(b, loc, wide, mask);
    Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(wide));
    mask = compare(arith::CmpIPredicate::slt, opaqueRegisters(registers, lanes), none);
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return LLVM::MaskedLoadOp::create(b, loc, type, pointer, mask, zero, alignment);
}

/// A copy of a vector that LLVM cannot see through, by registers of so many lanes.
Value KernelBuilder::opaqueRegisters(Value vector, int64_t lanes) {
  if (laneCount(vector) <= lanes)
    return opaque(vector, "=x,0");
  auto [low, high] = halves(vector);
  return concat({opaqueRegisters(low, lanes), opaqueRegisters(high, lanes)});
}

SmallVector<Memory> KernelBuilder::opaqueAliases(Memory memory, Value position, int64_t count) {
  Value pointer = elementPointer(memory, position);
  SmallVector<Memory> result;
  for (int64_t i = 0; i < count; ++i) {
    // Different clobber lists keep LLVM from merging the two statements.
    memory.pointer = opaque(pointer, i ? "=r,0,~{flags}" : "=r,0");
    result.push_back(memory);
  }
  return result;
}

Value KernelBuilder::isAligned(Value pointer, int64_t bytes) {
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
  Value rest = arith::AndIOp::create(b, loc, address, constant(bytes - 1));
  return compare(arith::CmpIPredicate::eq, rest, constant(0));
}

void KernelBuilder::fence() { LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::seq_cst); }

/// Converts loaded lanes from accessType to storageType.
Value KernelBuilder::fromAccessType(DType dtype, Value loaded) {
  if (dtype == DType::boolean) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(loaded.getType()));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, loaded, zero);
  }
  Type type = storageType(dtype);
  if (type == accessType(dtype))
    return loaded;
  if (auto vector = dyn_cast<VectorType>(loaded.getType()))
    type = VectorType::get(vector.getShape(), type);
  return arith::BitcastOp::create(b, loc, type, loaded);
}

Value KernelBuilder::load(const Memory &memory, const Index &position, int64_t width, Value mask) {
  Type element = accessType(memory.dtype);
  unsigned alignment = byteWidth(memory.dtype);
  if (width == 1 && mask && !isa<VectorType>(mask.getType())) { // the position may be invalid, as in an empty tensor
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(storageType(memory.dtype)));
    return when(mask, {zero}, [&] { return SmallVector<Value>{load(memory, position, 1, {})}; })[0];
  }
  if (width == 1 || position.uniform())
    return fromAccessType(memory.dtype,
                          LLVM::LoadOp::create(b, loc, element, elementPointer(memory, position.base), alignment));
  if (!position.lanes)
    if (Value pieces = loadGroups(memory, position, width, mask))
      return fromAccessType(memory.dtype, pieces);
  if (auto two = twoVectors.find(position.lanes); position.lanes && two != twoVectors.end())
    if (Value picked = loadFromTwoVectors(memory, position, two->second, width))
      return fromAccessType(memory.dtype, picked);
  auto type = VectorType::get({width}, element);
  auto pointers = LLVM::GEPOp::create(b, loc, VectorType::get({width}, memory.pointer.getType()), element,
                                      memory.pointer, lanesOf(position, width));
  if (!mask)
    mask = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()), true));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return fromAccessType(memory.dtype, LLVM::masked_gather::create(b, loc, type, pointers, mask, ValueRange(zero),
                                                                  b.getI32IntegerAttr(alignment)));
}

/// Loads a position with terms: the lanes that have the same multiples of the run-time sizes form a group, which is one
/// loadPieces. Null if there would be too many groups.
Value KernelBuilder::loadGroups(const Memory &memory, const Index &position, int64_t width, Value mask) {
  constexpr size_t kMostGroups = 8;
  if (position.terms.empty())
    return loadPieces(memory, position, width, mask);
  std::map<std::vector<int64_t>, SmallVector<int64_t>> groups; // lanes by multiples
  for (int64_t lane = 0; lane < width; ++lane) {
    std::vector<int64_t> multiples;
    for (const Index::Term &term : position.terms)
      multiples.push_back(term.multiples[lane]);
    groups[multiples].push_back(lane);
  }
  if (groups.size() > kMostGroups || int64_t(groups.size()) * 2 > width)
    return {};
  SmallVector<int64_t> offsets = offsetsOf(position, width);
  Value result;
  for (auto &[multiples, lanes] : groups) {
    Value base = position.base;
    for (auto [term, multiple] : llvm::zip_equal(position.terms, multiples))
      base = add(base, mul(term.factor, constant(multiple)));
    SmallVector<int64_t> own(width, offsets[lanes.front()]), chosen(width);
    SmallVector<bool> isHere(width, false);
    for (int64_t lane : lanes)
      own[lane] = offsets[lane], isHere[lane] = true;
    for (int64_t lane = 0; lane < width; ++lane)
      chosen[lane] = isHere[lane] ? width + lane : lane;
    Value needed = mask;
    if (mask)
      needed = arith::AndIOp::create(b, loc, mask, arith::ConstantOp::create(b, loc, b.getBoolVectorAttr(isHere)));
    Index at = indexAt(base, own);
    Value part = at.uniform() && !mask ? LLVM::LoadOp::create(b, loc, accessType(memory.dtype),
                                                              elementPointer(memory, at.base), byteWidth(memory.dtype))
                                             .getResult()
                                       : loadPieces(memory, at, width, needed);
    if (!part)
      return {};
    part = broadcast(part, width);
    result = result ? vector::ShuffleOp::create(b, loc, result, part, chosen).getResult() : part;
  }
  return result;
}

/// The first offsets of contiguous pieces of `length` elements that together cover `offsets`. No piece reaches below
/// the least or above the greatest offset, so that no load leaves the tensor.
static SmallVector<int64_t> piecesOf(ArrayRef<int64_t> offsets, int64_t length) {
  SmallVector<int64_t> sorted(offsets), begins;
  llvm::sort(sorted);
  for (int64_t offset : sorted)
    if (begins.empty() || offset >= begins.back() + length)
      begins.push_back(std::min(offset, sorted.back() - length + 1));
  return begins;
}

/// Loads lanes at constant offsets by contiguous loads and shuffles; null if that takes too many. Offsets may repeat,
/// descend, have a stride, or form several contiguous runs.
Value KernelBuilder::loadPieces(const Memory &memory, const Index &position, int64_t width, Value mask) {
  constexpr size_t kMostPieces = 8;
  constexpr int64_t kMostUses = 16; // of an element by lanes under a mask
  SmallVector<int64_t> offsets = offsetsOf(position, width);
  auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  int64_t length = std::min<int64_t>(width, llvm::bit_floor(uint64_t(*most - *least + 1)));
  SmallVector<int64_t> begins = piecesOf(offsets, length);
  if (begins.size() > kMostPieces || int64_t(begins.size()) * 2 > width)
    return {};
  auto type = VectorType::get({length}, accessType(memory.dtype));
  unsigned alignment = byteWidth(memory.dtype);
  Value result;
  SmallVector<bool> isPlaced(width, false);
  for (int64_t begin : begins) {
    // The lanes that this piece provides, and the element of the piece for each of them.
    SmallVector<int64_t> from(width, 0);
    SmallVector<SmallVector<int64_t>> users(length);
    SmallVector<int64_t> chosen(width);
    for (int64_t lane = 0; lane < width; ++lane) {
      int64_t at = offsets[lane] - begin;
      bool isHere = !isPlaced[lane] && at >= 0 && at < length;
      chosen[lane] = isHere ? width + lane : lane;
      if (!isHere)
        continue;
      isPlaced[lane] = true;
      from[lane] = at;
      users[at].push_back(lane);
    }
    Value pointer = elementPointer(memory, add(position.base, constant(begin))), piece;
    if (!mask) {
      piece = LLVM::LoadOp::create(b, loc, type, pointer, alignment);
    } else {
      size_t uses = 0;
      for (auto &lanes : users)
        uses = std::max(uses, lanes.size());
      if (int64_t(uses) > kMostUses)
        return {};
      piece = maskedLoad(type, pointer, usedElements(mask, users, uses), alignment);
    }
    bool isInOrder = length == width && llvm::all_of(llvm::enumerate(from),
                                                     [](auto lane) { return int64_t(lane.index()) == lane.value(); });
    Value placed = isInOrder ? piece : vector::ShuffleOp::create(b, loc, piece, piece, from).getResult();
    result = result ? vector::ShuffleOp::create(b, loc, result, placed, chosen).getResult() : placed;
  }
  return result;
}

/// Loads lanes at positions that lie in two neighbouring vectors, see TwoVectors; null if the target has no permutation
/// for this element type.
Value KernelBuilder::loadFromTwoVectors(const Memory &memory, const Index &position, const TwoVectors &two,
                                        int64_t width) {
  Type moved = accessType(memory.dtype), lane = b.getI32Type();
  if (!permutesPairs(width) || byteWidth(memory.dtype) > 4)
    return {};
  auto type = VectorType::get({width}, moved), wide = VectorType::get({width}, lane);
  auto narrow = VectorType::get({width}, b.getIntegerType(unsigned(8 * byteWidth(memory.dtype))));
  Value from = position.base ? add(position.base, two.base) : two.base;
  SmallVector<Value> vectors;
  for (auto [i, mask] : llvm::enumerate(two.inside)) {
    Value pointer = elementPointer(memory, add(from, constant(int64_t(i) * width)));
    unsigned alignment = byteWidth(memory.dtype);
    Value v = mask ? maskedLoad(type, pointer, mask, alignment)
                   : Value(LLVM::LoadOp::create(b, loc, type, pointer, alignment));
    v = type == narrow ? v : Value(arith::BitcastOp::create(b, loc, narrow, v));
    vectors.push_back(narrow == wide ? v : Value(arith::ExtUIOp::create(b, loc, wide, v)));
  }
  Value picked = LLVM::CallIntrinsicOp::create(b, loc, wide, b.getStringAttr("llvm.x86.avx512.vpermi2var.d.512"),
                                               ValueRange{vectors[0], two.picks, vectors[1]})
                     .getResult(0);
  picked = narrow == wide ? picked : Value(arith::TruncIOp::create(b, loc, narrow, picked));
  return type == narrow ? picked : Value(arith::BitcastOp::create(b, loc, type, picked));
}

/// Mask of the elements that active lanes of `mask` use; `users` lists the lanes of each element.
Value KernelBuilder::usedElements(Value mask, ArrayRef<SmallVector<int64_t>> users, size_t uses) {
  int64_t width = laneCount(mask), length = int64_t(users.size());
  if (uses == 1 && length == width && llvm::all_of(llvm::enumerate(users), [](auto element) {
        return !element.value().empty() && element.value().front() == int64_t(element.index());
      }))
    return mask;
  Value needed;
  for (size_t use = 0; use < uses; ++use) {
    SmallVector<int64_t> lanes;
    SmallVector<bool> isUsed;
    for (auto &all : users) {
      isUsed.push_back(use < all.size());
      lanes.push_back(isUsed.back() ? all[use] : 0);
    }
    // An explicit And: for a shuffle with undefined lanes, LLVM 22 emits a shift by more lanes than there are.
    Value some = vector::ShuffleOp::create(b, loc, mask, mask, lanes);
    if (llvm::is_contained(isUsed, false))
      some = arith::AndIOp::create(b, loc, some, arith::ConstantOp::create(b, loc, b.getBoolVectorAttr(isUsed)));
    needed = needed ? Value(arith::OrIOp::create(b, loc, needed, some)) : some;
  }
  return needed;
}

void KernelBuilder::store(const Memory &memory, const Index &position, Value value, int64_t width, Value mask) {
  unsigned alignment = byteWidth(memory.dtype);
  value = broadcast(value, width);
  Type moved = accessType(memory.dtype);
  if (moved != storageType(memory.dtype)) {
    if (width > 1)
      moved = VectorType::get({width}, moved);
    value = memory.dtype == DType::boolean ? Value(arith::ExtUIOp::create(b, loc, moved, value))
                                           : Value(arith::BitcastOp::create(b, loc, moved, value));
  }
  if (width == 1) {
    LLVM::StoreOp::create(b, loc, value, elementPointer(memory, position.base), alignment);
    return;
  }
  if (position.hasKnownOffsets() && position.stride == 1) {
    if (auto known = bounds.find(mask); mask && !target.avx512 && known != bounds.end())
      return storeFirst(memory, position.base, value, sub(known->second.second, known->second.first));
    Value pointer = elementPointer(memory, position.base);
    if (mask)
      LLVM::MaskedStoreOp::create(b, loc, value, pointer, mask, alignment);
    else if (memory.streamed)
      LLVM::StoreOp::create(b, loc, value, pointer, unsigned(width) * alignment, /*isVolatile=*/false,
                            /*isNonTemporal=*/true);
    else
      LLVM::StoreOp::create(b, loc, value, pointer, alignment);
    return;
  }
  auto element = cast<VectorType>(value.getType()).getElementType();
  auto pointers = LLVM::GEPOp::create(b, loc, VectorType::get({width}, memory.pointer.getType()), element,
                                      memory.pointer, lanesOf(position, width));
  if (!mask)
    mask = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()), true));
  LLVM::masked_scatter::create(b, loc, value, pointers, mask, b.getI32IntegerAttr(alignment));
}

/// Stores the first `count` lanes: the whole vector, or pieces of 1/2, 1/4, … of it. Without AVX-512 a masked store
/// costs 20 cycles on AMD processors, and for narrow elements one branch per element.
void KernelBuilder::storeFirst(const Memory &memory, Value position, Value vector, Value count) {
  int64_t lanes = laneCount(vector);
  unsigned alignment = byteWidth(memory.dtype);
  auto storeAt = [&](Value at, Value piece) {
    LLVM::StoreOp::create(b, loc, piece, elementPointer(memory, at), alignment);
  };
  if (auto known = constantOf(count)) {
    if (*known >= lanes)
      storeAt(position, vector);
    else if (lanes * alignment == target.vectorBytes)
      vector = opaque(vector, "=x,0"); // otherwise LLVM makes scalars of few lanes, in long dependency chains
    for (int64_t piece = lanes / 2; *known > 0 && *known < lanes && piece > 0; piece /= 2) {
      auto [low, high] = halves(vector);
      if (*known & piece)
        storeAt(position, low);
      position = *known & piece ? add(position, constant(piece)) : position;
      vector = *known & piece ? high : low;
    }
    return;
  }
  Value isWhole = compare(arith::CmpIPredicate::sge, count, constant(lanes));
  when(isWhole, [&] { storeAt(position, vector); });
  unless(isWhole, [&] {
    count = maximum(count, constant(0));
    for (int64_t piece = lanes / 2; piece > 0; piece /= 2) {
      auto [low, high] = halves(vector);
      Value bit = arith::AndIOp::create(b, loc, count, constant(piece));
      Value isTaken = compare(arith::CmpIPredicate::ne, bit, constant(0));
      auto branch = scf::IfOp::create(b, loc, TypeRange{position.getType(), low.getType()}, isTaken, true);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(branch.thenBlock());
        storeAt(position, low);
        scf::YieldOp::create(b, loc, ValueRange{add(position, constant(piece)), high});
        b.setInsertionPointToStart(branch.elseBlock());
        scf::YieldOp::create(b, loc, ValueRange{position, low});
      }
      position = branch.getResult(0), vector = branch.getResult(1);
    }
  });
}

} // namespace burin::codegen
