#include "codegen/emit/KernelBuilder.h"
#include "codegen/scalar/Scalar.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace burin::codegen {

// Entry points load their operands from memory, where noalias cannot be said; so the work is in an inner function whose
// arguments carry it, inlined into the entry.
KernelBuilder::KernelBuilder(ModuleOp module, mlir::Location loc, llvm::StringRef name, const Target &target,
                             ArrayRef<bool> shared, std::vector<Dim> knownSizes)
    : b(module.getContext()), loc(loc), target(target), sizes(std::move(knownSizes)) {
  auto *context = module.getContext();
  int64_t operandCount = shared.size();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto i64 = b.getI64Type();
  auto nothing = LLVM::LLVMVoidType::get(context);
  b.setInsertionPointToEnd(module.getBody());

  SmallVector<Type> bodyTypes(operandCount, pointer);
  bodyTypes.append({pointer, pointer, i64, i64});
  function = LLVM::LLVMFuncOp::create(b, loc, (name + ".body").str(), LLVM::LLVMFunctionType::get(nothing, bodyTypes),
                                      LLVM::Linkage::Internal);
  function.setAlwaysInline(true);
  for (int64_t i = 0; i < operandCount; ++i)
    if (!shared[i])
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());

  auto entry = LLVM::LLVMFuncOp::create(b, loc, name,
                                        LLVM::LLVMFunctionType::get(nothing, {pointer, pointer, pointer, i64, i64}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (int64_t i = 0; i < operandCount; ++i) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, block->getArgument(0), LLVM::GEPArg(int32_t(i)));
    arguments.push_back(LLVM::LoadOp::create(b, loc, pointer, slot));
  }
  llvm::append_range(arguments, block->getArguments().drop_front());
  LLVM::CallOp::create(b, loc, function, arguments);
  LLVM::ReturnOp::create(b, loc, ValueRange());

  block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  for (int64_t i = 0; i < operandCount; ++i)
    operands.push_back(block->getArgument(i));
  sizesPointer = block->getArgument(operandCount);
  scratch = block->getArgument(operandCount + 1);
  lo = block->getArgument(operandCount + 2);
  hi = block->getArgument(operandCount + 3);
}

void KernelBuilder::finish() { LLVM::ReturnOp::create(b, loc, ValueRange()); }

std::optional<int64_t> KernelBuilder::constantOf(Value x) {
  APInt n;
  if (matchPattern(x, m_ConstantInt(&n)))
    return n.getSExtValue();
  return std::nullopt;
}

Value KernelBuilder::constant(int64_t n) {
  Value &value = constants[n];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    value = arith::ConstantIntOp::create(b, loc, b.getI64Type(), n);
  }
  return value;
}

// A sum keeps its constant apart, as its right side: neighbouring positions share all the rest, and the constant ends
// up in the address of the instruction that goes there.
std::pair<Value, int64_t> KernelBuilder::apart(Value x) {
  if (auto c = constantOf(x))
    return {Value(), *c};
  if (auto sum = x.getDefiningOp<arith::AddIOp>())
    if (auto c = constantOf(sum.getRhs()))
      return {sum.getLhs(), *c};
  return {x, 0};
}

Value KernelBuilder::add(Value x, Value y) {
  auto [restX, constantX] = apart(x);
  auto [restY, constantY] = apart(y);
  int64_t total = constantX + constantY;
  if (!restX && !restY)
    return constant(total);
  if (!restX && constantX == 0)
    return y;
  if (!restY && constantY == 0)
    return x;
  Value rest = !restX ? restY : !restY ? restX : arith::AddIOp::create(b, loc, restX, restY).getResult();
  return total == 0 ? rest : arith::AddIOp::create(b, loc, rest, constant(total));
}
Value KernelBuilder::sub(Value x, Value y) {
  if (auto c = constantOf(y))
    return add(x, constant(-*c));
  return arith::SubIOp::create(b, loc, x, y);
}
Value KernelBuilder::mul(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return constant(*cx * *cy);
  if (cx == 0 || cy == 1)
    return x;
  if (cx == 1 || cy == 0)
    return y;
  if (auto [rest, c] = apart(x); cy && c)
    return add(mul(rest, y), constant(c * *cy));
  return arith::MulIOp::create(b, loc, x, y);
}
Value KernelBuilder::div(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy && *cy)
    return constant(*cx / *cy);
  return cy == 1 ? x : arith::DivUIOp::create(b, loc, x, y);
}
Value KernelBuilder::rem(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy && *cy)
    return constant(*cx % *cy);
  return cy == 1 ? constant(0) : arith::RemUIOp::create(b, loc, x, y);
}
Value KernelBuilder::minimum(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  return cx && cy ? constant(std::min(*cx, *cy)) : arith::MinSIOp::create(b, loc, x, y);
}
Value KernelBuilder::maximum(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  return cx && cy ? constant(std::max(*cx, *cy)) : arith::MaxSIOp::create(b, loc, x, y);
}
Value KernelBuilder::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

// Sizes are loaded once, at the top of the function, wherever they are first asked for.
Value KernelBuilder::dim(const Dim &size) { return size.isStatic() ? constant(size.value()) : handedIn(size); }

Value KernelBuilder::maskBound(const Dim &size, DType stored) {
  return byteWidth(stored) < 4 ? handedIn(size) : dim(size);
}

Value KernelBuilder::handedIn(const Dim &size) {
  Value &value = sizeValues[size.str()];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    auto place = llvm::find(sizes, size);
    if (place == sizes.end())
      place = sizes.insert(place, size);
    Value slot = LLVM::GEPOp::create(b, loc, sizesPointer.getType(), b.getI64Type(), sizesPointer,
                                     LLVM::GEPArg(int32_t(place - sizes.begin())));
    value = LLVM::LoadOp::create(b, loc, b.getI64Type(), slot);
  }
  return value;
}

int64_t KernelBuilder::laneCount(Value v) {
  auto type = dyn_cast<VectorType>(v.getType());
  return type ? type.getNumElements() : 1;
}

Value KernelBuilder::slice(Value v, int64_t first, int64_t count) {
  if (count == laneCount(v))
    return v;
  return vector::ShuffleOp::create(b, loc, v, v, llvm::to_vector(llvm::seq(first, first + count)));
}

Value KernelBuilder::shiftedIn(Value x, Value y, int64_t drop) {
  // Both of a shuffle's operands have the same length.
  auto lanes = laneCount(x);
  SmallVector<int64_t> repeated;
  for (int64_t lane = 0; lane < lanes; ++lane)
    repeated.push_back(lane % laneCount(y));
  Value long_ = vector::ShuffleOp::create(b, loc, y, y, repeated);
  return vector::ShuffleOp::create(b, loc, x, long_, llvm::to_vector(llvm::seq(drop, drop + lanes)));
}

Value KernelBuilder::sideBySide(ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors[0];
  Value low = sideBySide(vectors.take_front(vectors.size() / 2)),
        high = sideBySide(vectors.drop_front(vectors.size() / 2));
  return vector::ShuffleOp::create(b, loc, low, high, llvm::to_vector(llvm::seq<int64_t>(0, 2 * laneCount(low))));
}

std::pair<Value, Value> KernelBuilder::halves(Value v) {
  int64_t half = laneCount(v) / 2;
  return {slice(v, 0, half), slice(v, half, half)};
}

// Blocks of 1, 2, 4, … lanes change places.
void KernelBuilder::turn(MutableArrayRef<Value> square) {
  auto lanes = int64_t(square.size());
  for (int64_t distance = 1; distance < lanes; distance *= 2)
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & distance)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        low.push_back(lane & distance ? lanes + lane - distance : lane);
        high.push_back(lane & distance ? lanes + lane : lane + distance);
      }
      Value x = square[i], y = square[i + distance];
      square[i] = vector::ShuffleOp::create(b, loc, x, y, low);
      square[i + distance] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
}

Value KernelBuilder::multiplyAdd(DType type, Value x, Value y, Value sum) {
  if (isFloat(type))
    return vector::FMAOp::create(b, loc, x, y, sum);
  return arith::AddIOp::create(b, loc, sum, arith::MulIOp::create(b, loc, x, y));
}

Value KernelBuilder::broadcast(Value v, int64_t width) {
  if (width == 1 || isa<VectorType>(v.getType()))
    return v;
  return vector::BroadcastOp::create(b, loc, VectorType::get({width}, v.getType()), v);
}

Value KernelBuilder::iota(int64_t width) {
  SmallVector<int64_t> steps(width);
  for (int64_t i = 0; i < width; ++i)
    steps[i] = i;
  return arith::ConstantOp::create(b, loc, b.getI64VectorAttr(steps));
}

Value KernelBuilder::lanesOf(const Index &i, int64_t width) {
  if (i.lanes)
    return i.lanes;
  Value base = broadcast(i.base, width);
  if (i.stride == 0)
    return base;
  Value steps = iota(width);
  if (i.stride != 1)
    steps = arith::MulIOp::create(b, loc, steps, broadcast(constant(i.stride), width));
  return arith::AddIOp::create(b, loc, base, steps);
}

Value KernelBuilder::below(Value begin, Value end, int64_t width) {
  Value mask = compare(arith::CmpIPredicate::slt, lanesOf({begin, 1}, width), broadcast(end, width));
  bounds[mask] = {begin, end};
  return mask;
}

Index KernelBuilder::add(const Index &x, const Index &y) {
  if (!x.lanes && !y.lanes)
    return {add(x.base, y.base), x.stride + y.stride};
  return {{}, 0, arith::AddIOp::create(b, loc, lanesOf(x, width), lanesOf(y, width))};
}

Index KernelBuilder::scale(const Index &x, Value factor) {
  if (x.uniform())
    return {mul(x.base, factor)};
  auto known = constantOf(factor);
  if (!x.lanes && known)
    return {mul(x.base, factor), x.stride * *known};
  return {{}, 0, arith::MulIOp::create(b, loc, lanesOf(x, width), broadcast(factor, width))};
}

SmallVector<Value> KernelBuilder::loop(Value from, Value to, Value step, ValueRange init,
                                       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto cfrom = constantOf(from), cto = constantOf(to), cstep = constantOf(step);
  if (cfrom && cto && *cto <= *cfrom)
    return SmallVector<Value>(init);
  if (cfrom && cto && cstep && *cto - *cfrom <= *cstep)
    return body(from, init);
  auto loop = scf::ForOp::create(b, loc, from, to, step, init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.setInsertionPointToEnd(loop.getBody());
  if (!init.empty() || loop.getBody()->empty() || !loop.getBody()->back().hasTrait<OpTrait::IsTerminator>())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

SmallVector<Value> KernelBuilder::loopWhile(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                                            llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::WhileOp::create(
      b, loc, init.getTypes(), init,
      [&](OpBuilder &inner, Location, ValueRange carried) {
        b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        Value goOn = condition(carried);
        scf::ConditionOp::create(b, loc, goOn, carried);
      },
      [&](OpBuilder &inner, Location, ValueRange carried) {
        b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        SmallVector<Value> next = body(carried);
        scf::YieldOp::create(b, loc, next);
      });
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> body) {
  if (auto known = constantOf(condition)) {
    if (*known)
      body();
    return;
  }
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

SmallVector<Value> KernelBuilder::when(Value condition, ValueRange otherwise,
                                       llvm::function_ref<SmallVector<Value>()> body) {
  auto branch = scf::IfOp::create(b, loc, otherwise.getTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  return SmallVector<Value>(branch.getResults());
}

void KernelBuilder::unless(Value condition, llvm::function_ref<void()> body) {
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  when(arith::XOrIOp::create(b, loc, condition, yes), body);
}

Type KernelBuilder::storageType(DType type) { return laneType(b.getContext(), type); }

Index KernelBuilder::linear(const Shape &shape, ArrayRef<Index> at) {
  if (shape.empty())
    return {constant(0)};
  Index position = at[0];
  for (size_t i = 1; i < shape.size(); ++i)
    position = add(scale(position, dim(shape[i])), at[i]);
  return position;
}

// Memory is moved as integers where the element type is not one that vector loads and stores know on every target.
Type KernelBuilder::movedType(DType type) {
  if (type == DType::boolean)
    return b.getI8Type();
  return type == DType::f16 ? Type(b.getI16Type()) : storageType(type);
}

Value KernelBuilder::elementPointer(const Memory &memory, Value position) {
  Type type = movedType(memory.dtype);
  auto [rest, offset] = apart(position);
  Value pointer = memory.pointer;
  if (rest)
    pointer = LLVM::GEPOp::create(b, loc, pointer.getType(), type, pointer, rest);
  return offset ? LLVM::GEPOp::create(b, loc, pointer.getType(), type, pointer, constant(offset)) : pointer;
}

/// The same, as the result of assembly without instructions.
Value KernelBuilder::hidden(Value v, llvm::StringRef constraints) {
  return LLVM::InlineAsmOp::create(b, loc, v.getType(), v, /*asm_string=*/"", constraints, /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None, {}, {})
      .getResult(0);
}

SmallVector<Memory> KernelBuilder::namesOf(Memory memory, Value position, int64_t names) {
  Value pointer = elementPointer(memory, position);
  SmallVector<Memory> result;
  for (int64_t i = 0; i < names; ++i) {
    // That one of them touches the flags keeps LLVM from taking two for one.
    memory.pointer = hidden(pointer, i ? "=r,0,~{flags}" : "=r,0");
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

Value KernelBuilder::load(const Memory &memory, const Index &position, int64_t width, Value mask) {
  Type element = movedType(memory.dtype);
  unsigned alignment = byteWidth(memory.dtype);
  auto toLanes = [&](Value moved) -> Value {
    if (memory.dtype == DType::boolean) {
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(moved.getType()));
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, moved, zero);
    }
    Type type = storageType(memory.dtype);
    if (type == element)
      return moved;
    if (auto vector = dyn_cast<VectorType>(moved.getType()))
      type = VectorType::get(vector.getShape(), type);
    return arith::BitcastOp::create(b, loc, type, moved);
  };
  if (width == 1 || position.uniform())
    return toLanes(LLVM::LoadOp::create(b, loc, element, elementPointer(memory, position.base), alignment));
  auto type = VectorType::get({width}, element);
  if (!position.lanes && position.stride == 1) {
    Value pointer = elementPointer(memory, position.base);
    if (!mask)
      return toLanes(LLVM::LoadOp::create(b, loc, type, pointer, alignment));
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    return toLanes(LLVM::MaskedLoadOp::create(b, loc, type, pointer, mask, zero, alignment));
  }
  auto pointers = LLVM::GEPOp::create(b, loc, VectorType::get({width}, memory.pointer.getType()), element,
                                      memory.pointer, lanesOf(position, width));
  if (!mask)
    mask = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()), true));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return toLanes(
      LLVM::masked_gather::create(b, loc, type, pointers, mask, ValueRange(zero), b.getI32IntegerAttr(alignment)));
}

void KernelBuilder::store(const Memory &memory, const Index &position, Value value, int64_t width, Value mask) {
  unsigned alignment = byteWidth(memory.dtype);
  value = broadcast(value, width);
  Type moved = movedType(memory.dtype);
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
  if (!position.lanes && position.stride == 1) {
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

/// Stores the first `count` lanes: all, or pieces of half as many, a quarter, …, one. Without AVX-512 a masked store
/// takes AMD's processors 20 cycles, and one of narrow elements a branch for each.
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
      vector = hidden(vector, "=x,0"); // else LLVM makes scalars of few lanes, in an order of long chains
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
