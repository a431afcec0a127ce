#include "codegen/gpu/rowwise/PartialReduction.h"
#include "codegen/gpu/Block.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kMovedBytes = 16;     // of one load or store
constexpr int64_t kMostRead = 32 << 10; // bytes of accumulators that each block of a slice combines itself
constexpr int64_t kMostTogether = 8;    // accumulators that a thread loads at once to combine them
constexpr int64_t kUnknownTogether = 4; // if the number of parts is not known

PartialReduction::PartialReduction(const KernelEmission &kernel)
    : RowwiseSchedule(kernel.body, *kernel.space, kernel.results, kernel.e.k.target), k(kernel.e.k),
      p(kernel.e, *kernel.space), pointers(kernel.results) {
  full.stored = fullResults;
  points.stored = pointResults;
  for (int d : reduced)
    rowShape.push_back(space[d]);
  for (int d : parallel)
    pointShape.push_back(space[d]);
  llvm::for_each(levels, [&](auto &level) { dropRepeated(level); });
}

/// Drops reductions of a level that differ from earlier ones in `keepdims` alone: their elements are the same.
void PartialReduction::dropRepeated(SmallVector<Operation *> &level) {
  auto kindOf = [](Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase("keepdims");
    return std::tuple(op->getName(), op->getOperand(0), attributes.getDictionary(op->getContext()));
  };
  SmallVector<Operation *> distinct;
  for (Operation *op : level) {
    auto same = llvm::find_if(distinct, [&](Operation *other) { return kindOf(other) == kindOf(op); });
    if (same == distinct.end())
      distinct.push_back(op);
    else
      repeated[*same].push_back(op->getResult(0));
  }
  level = distinct;
}

std::vector<Reducer> PartialReduction::reducersOf(ArrayRef<Operation *> level) {
  std::vector<Reducer> reducers;
  for (Operation *op : level)
    reducers.emplace_back(k, op);
  return reducers;
}

SmallVector<Value> PartialReduction::identities(MutableReducers reducers, int64_t count) {
  SmallVector<Value> all;
  for (Reducer &reducer : reducers)
    llvm::append_range(all, reducer.identity(count));
  return all;
}

SmallVector<Value> PartialReduction::combineAll(MutableReducers reducers, ArrayRef<Value> x, ArrayRef<Value> y) {
  SmallVector<Value> both;
  for (Reducer &reducer : reducers) {
    size_t at = both.size();
    llvm::append_range(both, reducer.combine(x.slice(at, reducer.size()), y.slice(at, reducer.size())));
  }
  return both;
}

SmallVector<Value> PartialReduction::step(MutableReducers reducers, ValueRange carried, const Index &position,
                                          Value mask) {
  SmallVector<Value> next;
  for (Reducer &reducer : reducers) {
    auto accumulator = SmallVector<Value>(carried.slice(next.size(), reducer.size()));
    Value x = k.broadcast(p.at(reducer.op->getOperand(0)), k.width);
    llvm::append_range(next, reducer.step(accumulator, x, position, mask));
  }
  return next;
}

void PartialReduction::place(Value i, ArrayRef<int> dims, int64_t count) {
  for (size_t n = dims.size(); n-- > 0;) {
    Value size = k.dim(space[dims[n]]);
    p.point[dims[n]] = {n ? k.rem(i, size) : i, n + 1 == dims.size() && count > 1};
    i = n ? k.div(i, size) : i;
  }
}

int64_t PartialReduction::vectorLanes() const {
  int64_t widest = 2;
  auto see = [&](Value v) { widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v))); };
  llvm::for_each(body.getArguments(), see);
  for (Value yielded : body.getTerminator()->getOperands())
    see(yielded);
  const int64_t count = kMovedBytes / widest;
  return space.back().isStatic() && space.back().value() % count == 0 ? count : 1;
}

int64_t PartialReduction::bytesOf(Value accumulator) {
  return (getElementTypeOrSelf(accumulator.getType()).getIntOrFloatBitWidth() + 7) / 8;
}

SmallVector<Value>
PartialReduction::loopTogether(Value from, Value to, int64_t step, int64_t together, ValueRange init,
                               llvm::function_ref<SmallVector<Value>(Value, ValueRange, int64_t)> body) {
  SmallVector<Value> state(init);
  if (together > 1) {
    state.push_back(from);
    Value jump = k.constant(step * together);
    state =
        k.loop(from, k.sub(to, k.constant(step * (together - 1))), jump, state, [&](Value first, ValueRange carried) {
          SmallVector<Value> next = body(first, carried.drop_back(), together);
          next.push_back(k.add(first, jump));
          return next;
        });
    from = state.pop_back_val();
  }
  const bool before = std::exchange(k.keepsRolled, true);
  state = k.loop(from, to, k.constant(step), state,
                 [&](Value first, ValueRange carried) { return body(first, carried, 1); });
  k.keepsRolled = before;
  return state;
}

SmallVector<Value> PartialReduction::loopTogether(Value from, Value to, int64_t step, int64_t together, ValueRange init,
                                                  llvm::function_ref<SmallVector<Value>(Value, ValueRange)> visit) {
  return loopTogether(from, to, step, together, init, [&](Value first, ValueRange carried, int64_t count) {
    SmallVector<Value> next(carried);
    for (int64_t n = 0; n < count; ++n)
      next = visit(k.add(first, k.constant(n * step)), next);
    return next;
  });
}

void PartialReduction::allocateShared(int64_t bytes) {
  if (!bytes)
    return;
  sharedCopy = (bytes + kMovedBytes - 1) / kMovedBytes * kMovedBytes;
  shared = sharedArray(k, k.b.getI8Type(), sharedCopy * copiesOfShared());
}

Value PartialReduction::useShared() {
  const int64_t offset = sharedUses++ % copiesOfShared() * sharedCopy;
  return LLVM::GEPOp::create(k.b, k.loc, shared.getType(), k.b.getI8Type(), shared, k.constant(offset));
}

int64_t PartialReduction::mostBytesOfLevel() {
  int64_t most = 0;
  for (auto &level : levels) {
    auto reducers = reducersOf(level);
    int64_t bytes = 0;
    for (Value v : identities(reducers, 1))
      bytes += bytesOf(v);
    most = std::max(most, bytes);
  }
  return most;
}

void PartialReduction::forBothAlignments(llvm::function_ref<void()> emit) {
  Value isAligned = operandsAligned(p.e, body, pointers);
  k.when(isAligned, [&] {
    assumeOperandsAligned(p.e, body, pointers);
    emit();
  });
  k.unless(isAligned, [&] { // rare: short code
    isShort = k.keepsRolled = true;
    emit();
    isShort = k.keepsRolled = false;
  });
}

/// Bools are stored as bytes.
static Type wholeBytes(OpBuilder &b, Type type) {
  if (!getElementTypeOrSelf(type).isInteger(1))
    return type;
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), b.getI8Type())) : b.getI8Type();
}

static unsigned alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  const int64_t bytes = int64_t(getElementTypeOrSelf(type).getIntOrFloatBitWidth()) / 8;
  return unsigned(std::min(kMovedBytes, bytes * (vector ? vector.getNumElements() : 1)));
}

void PartialReduction::storeLanes(Value memory, Value at, Value v) {
  Type type = wholeBytes(k.b, v.getType());
  Value stored = type == v.getType() ? v : arith::ExtUIOp::create(k.b, k.loc, type, v).getResult();
  Value pointer = LLVM::GEPOp::create(k.b, k.loc, memory.getType(), getElementTypeOrSelf(type), memory, at);
  LLVM::StoreOp::create(k.b, k.loc, stored, pointer, alignmentOf(type));
}

Value PartialReduction::loadLanes(Value memory, Value at, Type type) {
  Type whole = wholeBytes(k.b, type);
  Value pointer = LLVM::GEPOp::create(k.b, k.loc, memory.getType(), getElementTypeOrSelf(whole), memory, at);
  Value loaded = LLVM::LoadOp::create(k.b, k.loc, whole, pointer, alignmentOf(whole));
  return whole == type ? loaded : arith::TruncIOp::create(k.b, k.loc, type, loaded).getResult();
}

bool PartialReduction::overwritesPoints(bool isForLevels) const {
  SmallVector<Value> readers;
  for (auto &[value, pointer] : full.stored)
    readers.push_back(value);
  if (isForLevels)
    for (auto &level : levels)
      for (Operation *op : level)
        readers.push_back(op->getOperand(0));
  auto kernel = cast<KernelOp>(body.getParentOp());
  if (!kernel.getInPlace())
    return false;
  return llvm::any_of(llvm::enumerate(*kernel.getInPlace()), [&](auto entry) {
    if (entry.value() < 0 || !needs(readers, body.getArgument(unsigned(entry.value())), false))
      return false;
    Value yielded = body.getTerminator()->getOperand(unsigned(entry.index()));
    return llvm::any_of(points.stored, [&](auto &result) { return result.first == yielded; });
  });
}

void PartialReduction::planSlots() {
  for (auto &level : levels) {
    auto reducers = reducersOf(level);
    slots.emplace_back();
    for (Value v : identities(reducers, 1)) {
      slots.back().push_back(slotBytes);
      slotBytes += (parts.columns * bytesOf(v) + kMovedBytes - 1) / kMovedBytes * kMovedBytes;
    }
  }
}

bool PartialReduction::combinesApart(size_t level) const {
  if (level + 1 == levels.size() && full.stored.empty())
    return false; // one block of each slice needs the result
  return parts.columns > 1 && (!parts.count.isStatic() || parts.count.value() * slotBytes > kMostRead);
}

SmallVector<PartialReduction::Stage> PartialReduction::stages() const {
  SmallVector<Stage> all;
  for (size_t level = 0; level < levels.size(); ++level) {
    all.push_back({Stage::Reduce, level});
    if (combinesApart(level))
      all.push_back({Stage::Combine, level});
  }
  if (full.stored.empty()) {
    all.push_back({Stage::Points, levels.size()});
    return all;
  }
  all.push_back({Stage::Results, levels.size()});
  if (overwritesPoints(/*isForLevels=*/false)) // what other blocks may still read
    all.push_back({Stage::Points, levels.size()});
  return all;
}

GpuLaunch PartialReduction::launchOfParts() const {
  Dim group = parts.slices * parts.count;
  if (!isCut())
    return {.blocks = group, .threads = threads};
  const auto groups = int64_t(stages().size());
  const int64_t threadsOfSlot = threads * (parts.count.isStatic() ? groups : 1);
  // A slice of one part needs one launch: its block goes through all stages.
  Dim more = parts.count.isStatic() ? Dim(1) : min(parts.count, 2) - 1;
  return {.blocks = group + group * more * (groups - 1),
          .threads = threads,
          .scratchOfThread = (slotBytes + threadsOfSlot - 1) / threadsOfSlot,
          .group = group};
}

Value PartialReduction::partAddress(Value number) {
  Value block = parts.isAdjacent ? k.add(k.mul(slice, k.dim(parts.count)), number)
                                 : k.add(k.mul(number, k.dim(parts.slices)), slice);
  return LLVM::GEPOp::create(k.b, k.loc, k.scratch.getType(), k.b.getI8Type(), k.scratch,
                             k.mul(block, k.constant(slotBytes)));
}

static Value offsetBy(KernelBuilder &k, Value pointer, int64_t bytes) {
  return LLVM::GEPOp::create(k.b, k.loc, pointer.getType(), k.b.getI8Type(), pointer, k.constant(bytes));
}

void PartialReduction::storePart(size_t level, ArrayRef<Value> sums) {
  k.when(k.compare(arith::CmpIPredicate::eq, threadOfSlice, k.constant(0)), [&] {
    Value memory = partAddress(part);
    for (auto [offset, v] : llvm::zip(slots[level], sums))
      storeLanes(offsetBy(k, memory, offset), lane, v);
  });
}

SmallVector<Value> PartialReduction::loadPart(size_t level, Value number, ArrayRef<Value> like) {
  Value memory = partAddress(number);
  SmallVector<Value> loaded;
  for (auto [offset, v] : llvm::zip(slots[level], like))
    loaded.push_back(loadLanes(offsetBy(k, memory, offset), lane, v.getType()));
  return loaded;
}

SmallVector<Value> PartialReduction::combineParts(size_t level, MutableReducers reducers) {
  const SmallVector<Value> init = identities(reducers, lanes);
  int64_t together = parts.columns > 1 && !isShort ? kUnknownTogether : 1;
  if (parts.count.isStatic() && !isShort)
    together = std::clamp<int64_t>(parts.count.value() / threadsOfSlice, 1, kMostTogether);
  auto combine = [&](Value number, ValueRange carried, int64_t count) {
    SmallVector<SmallVector<Value>> loaded;
    for (int64_t n = 0; n < count; ++n)
      loaded.push_back(loadPart(level, k.add(number, k.constant(n * threadsOfSlice)), init));
    SmallVector<Value> sums(carried);
    for (auto &others : loaded)
      sums = combineAll(reducers, sums, others);
    return sums;
  };
  SmallVector<Value> state = loopTogether(threadOfSlice, k.dim(parts.count), threadsOfSlice, together, init, combine);
  return join(reducers, std::move(state));
}

/// The results of a level that an earlier group has reduced.
SmallVector<Value> PartialReduction::loadTotals(size_t level, MutableReducers reducers) {
  if (!combinesApart(level))
    return combineParts(level, reducers);
  return loadPart(level, k.constant(0), identities(reducers, lanes));
}

void PartialReduction::bindLevel(MutableReducers reducers, ArrayRef<Value> sums) {
  size_t at = 0;
  Value count = k.dim(elements(rowShape));
  for (Reducer &reducer : reducers) {
    Value result = reducer.finish(sums.slice(at, reducer.size()), count);
    p.bind(reducer.op->getResult(0), result);
    for (Value v : repeated.lookup(reducer.op))
      p.bind(v, result);
    at += reducer.size();
  }
}

void PartialReduction::emitStage(const Stage &stage, Value isFirst) {
  p.scoped([&] {
    for (size_t level = 0; level < stage.level; ++level) {
      auto reducers = reducersOf(levels[level]);
      bindLevel(reducers, loadTotals(level, reducers));
    }
    if (stage.kind == Stage::Reduce) {
      auto reducers = reducersOf(levels[stage.level]);
      storePart(stage.level, join(reducers, reducePart(reducers)));
    } else if (stage.kind == Stage::Combine) { // only in blocks of first parts; the total replaces that of the part
      auto reducers = reducersOf(levels[stage.level]);
      storePart(stage.level, combineParts(stage.level, reducers));
    } else {
      if (stage.kind == Stage::Results)
        writeFull();
      if (stage.kind == Stage::Points || !overwritesPoints(/*isForLevels=*/false))
        writePoints(isFirst);
    }
  });
}

/// A block per slice.
void PartialReduction::emitWhole() {
  p.scoped([&] {
    for (auto &level : levels) {
      auto reducers = reducersOf(level);
      bindLevel(reducers, join(reducers, reducePart(reducers)));
    }
    if (!full.stored.empty())
      writeFull();
    if (overwritesPoints(/*isForLevels=*/true))
      syncSlice();
    writePoints(k.compare(arith::CmpIPredicate::eq, part, part));
  });
}

void PartialReduction::emitLevels(llvm::function_ref<void(Value, Value)> placeBlock) {
  sharedUses = 0;
  if (!isCut()) {
    slice = k.lo, part = k.constant(0);
    placeBlock(slice, part);
    return emitWhole();
  }
  if (slots.empty())
    planSlots();
  Value size = k.dim(parts.slices * parts.count), group = k.div(k.lo, size), block = k.rem(k.lo, size);
  Value count = k.dim(parts.isAdjacent ? parts.count : parts.slices);
  slice = k.div(block, count), part = k.rem(block, count);
  if (!parts.isAdjacent)
    std::swap(slice, part);
  placeBlock(slice, part);
  auto equals = [&](Value x, int64_t n) { return k.compare(arith::CmpIPredicate::eq, x, k.constant(n)); };
  Value isWhole = equals(k.dim(parts.count), 1), isFirst = equals(part, 0);
  SmallVector<Stage> all = stages();
  for (auto [i, stage] : llvm::enumerate(all)) {
    const bool isCombination = stage.kind == Stage::Combine; // of a single part: there is nothing to do
    Value emits = equals(group, int64_t(i));
    if (!isCombination)
      emits = arith::OrIOp::create(k.b, k.loc, emits, isWhole);
    if (isCombination || stage.kind == Stage::Points)
      emits = arith::AndIOp::create(k.b, k.loc, emits, isFirst);
    k.when(emits, [&] {
      sharedUses = 0;
      emitStage(stage, isFirst);
      // The block of a single part goes on and reads what its threads have stored.
      if (i + 1 < all.size() && !isCombination && !parts.count.isStatic())
        k.when(isWhole, [&] { barrier(k); });
    });
  }
}

} // namespace burin::codegen
