#include "passes/analysis/IterationSpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

SizeClasses::SizeClasses(Operation *op) {
  auto function = dyn_cast_or_null<func::FuncOp>(op);
  if (op && !function)
    function = op->getParentOfType<func::FuncOp>();
  auto checks = function ? function->getAttrOfType<ArrayAttr>(kChecksAttr) : ArrayAttr();
  if (!checks)
    return;
  for (Attribute attribute : checks) { // [size, size, place]
    auto check = dyn_cast<ArrayAttr>(attribute);
    auto left = check && check.size() == 3 ? dyn_cast<StringAttr>(check[0]) : StringAttr();
    auto right = left ? dyn_cast<StringAttr>(check[1]) : StringAttr();
    std::optional<Dim> x = left ? Dim::parse(left.getValue().str()) : std::nullopt;
    std::optional<Dim> y = right ? Dim::parse(right.getValue().str()) : std::nullopt;
    if (!x || !y || x->isStatic() || y->isStatic() || areSame(*x, *y))
      continue;
    const Dim from = of(*x), to = of(*y);
    for (auto &[size, representative] : members)
      if (representative == from)
        representative = to;
    for (const Dim &size : {*x, *y})
      if (llvm::none_of(members, [&](const auto &member) { return member.first == size; }))
        members.push_back({size, to});
  }
}

Dim SizeClasses::of(const Dim &size) const {
  for (const auto &[member, representative] : members)
    if (member == size)
      return representative;
  return size;
}

bool SizeClasses::areSame(const Shape &x, const Shape &y) const {
  return x.size() == y.size() && llvm::all_of(llvm::zip(x, y), [&](auto sizes) {
           const auto &[a, b] = sizes;
           return areSame(a, b);
         });
}

bool mayRename(Operation *op) {
  if (!isView(op))
    return false;
  const Shape from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  return from.size() == to.size() && from != to;
}

bool isRenaming(Operation *op, const SizeClasses &classes) {
  return mayRename(op) && classes.areSame(shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)));
}

Value skipReshapes(Value v) {
  while (isView(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  return v;
}

/// Softmax and norms: row ops whose results have the shape of their operand.
static bool isRowComposite(Operation *op) {
  RowAxes rows = factsOf(op).rows;
  return rows == RowAxes::AlongAxis || rows == RowAxes::FromAxis;
}

SmallVector<int64_t> reducedAxes(Operation *op) { return isRowComposite(op) ? SmallVector<int64_t>() : rowAxes(op); }

SmallVector<int64_t> rowAxes(Operation *op) {
  RowAxes rows = factsOf(op).rows;
  if (rows == RowAxes::None)
    return {};
  if (rows == RowAxes::Axes)
    return SmallVector<int64_t>(op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef());
  SmallVector<int64_t> axes{op->getAttrOfType<IntegerAttr>("axis").getInt()};
  if (rows == RowAxes::FromAxis)
    for (int64_t axis = axes[0], rank = shapeOf(op->getOperand(0)).size(); ++axis < rank;)
      axes.push_back(axis);
  return axes;
}

std::optional<SmallVector<int>> unitReshape(Operation *op, const SizeClasses &classes) {
  Shape from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  SmallVector<int> source(to.size(), -1);
  size_t i = 0;
  for (size_t o = 0; o < to.size(); ++o) {
    if (to[o] == Dim(1))
      continue;
    while (i < from.size() && from[i] == Dim(1))
      ++i;
    if (i == from.size() || !classes.areSame(from[i], to[o]))
      return std::nullopt;
    source[o] = i++;
  }
  while (i < from.size() && from[i] == Dim(1))
    ++i;
  return i == from.size() ? std::optional(source) : std::nullopt;
}

bool isAtPoint(const IterationSpace &space, Operation *op) {
  const bool mayBe = isa<BroadcastToOp>(op) || isView(op);
  auto operand = mayBe ? space.dims.find(op->getOperand(0)) : space.dims.end();
  auto result = mayBe ? space.dims.find(op->getResult(0)) : space.dims.end();
  if (operand == space.dims.end() || result == space.dims.end() || isa<BroadcastToOp>(op))
    return operand != space.dims.end();
  auto isDim = [](int d) { return d >= 0; };
  return llvm::equal(llvm::make_filter_range(operand->second, isDim), llvm::make_filter_range(result->second, isDim));
}

/// Whether one loop can run along two dimensions of the space: in every value that has one of them, the second one
/// follows the first one.
static bool areMergeable(const IterationSpace &a, const SizeClasses &classes, int first, int second) {
  if (a.reduced[first] != a.reduced[second])
    return false;
  for (const auto &[v, map] : a.dims) {
    auto begin = llvm::find(map, second), end = map.end();
    while (end != map.begin() && end[-1] != first)
      --end;
    const bool hasFirst = end != map.begin(), hasSecond = begin != map.end();
    if (hasFirst != hasSecond)
      return false;
    if (!hasFirst)
      continue;
    // Only sizes of 1 may lie between the two.
    if (begin < end || !std::all_of(end, begin, [](int d) { return d == -1; }))
      return false;
    // Ops that compute elements by position (movement) need their dimensions unmerged.
    Operation *op = v.getDefiningOp();
    const bool isPointwise = !op || op->hasTrait<ir::Elementwise>() || isa<BroadcastToOp>(op) ||
                             !reducedAxes(op).empty() || (isView(op) && unitReshape(op, classes));
    if (!isPointwise)
      return false;
  }
  return true;
}

/// Drops the dimensions of size 1, which no value maps to, and merges neighbours that every value treats alike.
static IterationSpace merged(const IterationSpace &a, const SizeClasses &classes,
                             llvm::function_ref<bool(const Dim &)> isOne) {
  IterationSpace result;
  SmallVector<int> target(a.space.size(), -1);
  int previous = -1;
  for (int d = 0; d < int(a.space.size()); ++d) {
    if (isOne(a.space[d]))
      continue;
    if (previous >= 0 && areMergeable(a, classes, previous, d)) {
      result.space.back() = result.space.back() * a.space[d];
    } else {
      result.space.push_back(a.space[d]);
      result.reduced.push_back(a.reduced[d]);
    }
    target[d] = int(result.space.size()) - 1;
    previous = d;
  }
  for (const auto &[v, map] : a.dims)
    result.dims[v] = llvm::map_to_vector(map, [&](int d) { return d < 0 ? -1 : target[d]; });
  return result;
}

namespace {

using Map = SmallVector<int>; // per dimension of a value: dimension of the unmerged space, or -1

class Aligner {
public:
  Aligner(Block &body, const SizeClasses &classes) : body(body), classes(classes) {}

  std::optional<IterationSpace> run() {
    if (!seed())
      return std::nullopt;
    while (!worklist.empty() && consistent) {
      Value v = worklist.pop_back_val();
      if (Operation *op = v.getDefiningOp())
        relate(op);
      for (Operation *user : v.getUsers())
        relate(user);
    }
    if (!consistent || !complete())
      return std::nullopt;
    IterationSpace unmerged;
    unmerged.space = space;
    unmerged.reduced = reducedDims;
    for (auto &[v, map] : maps)
      unmerged.dims[v] = map;
    IterationSpace result = merged(unmerged, classes, [](const Dim &size) { return size == Dim(1); });
    return movesOnlyElements(result) ? std::optional(result) : std::nullopt;
  }

private:
  bool assign(Value v, Map map) {
    Shape shape = shapeOf(v);
    for (size_t d = 0; d < map.size(); ++d)
      if (shape[d] == Dim(1))
        map[d] = -1;
      else if (map[d] < 0 || !classes.areSame(shape[d], space[map[d]]))
        return consistent = false;
    auto [it, inserted] = maps.try_emplace(v, map);
    if (inserted)
      worklist.push_back(v);
    return consistent &= it->second == map;
  }

  bool seed() {
    Value root;
    for (Operation &op : body) {
      SmallVector<int64_t> axes = rowAxes(&op);
      if (axes.empty()) {
        if (isa<ContractOp>(op))
          root = op.getResult(0);
        continue;
      }
      if (!root || reducedDims.empty()) {
        root = op.getOperand(0);
        reducedDims.assign(shapeOf(root).size(), false);
        for (int64_t axis : axes)
          reducedDims[axis] = true;
      }
    }
    if (!root) {
      for (Value yielded : body.getTerminator()->getOperands()) {
        yielded = skipReshapes(yielded);
        if (!root || shapeOf(yielded).size() > shapeOf(root).size())
          root = yielded;
      }
    }
    if (!root)
      return false;
    space = shapeOf(root);
    reducedDims.resize(space.size(), false);
    return assign(root, identity());
  }

  Map identity() {
    Map map(space.size());
    for (size_t i = 0; i < map.size(); ++i)
      map[i] = i;
    return map;
  }

  // Propagates the known maps of operands and results of `op` to the others.
  void relate(Operation *op) {
    if (op->getBlock() != &body)
      return;
    if (op->hasTrait<ir::Elementwise>()) {
      for (Value v : op->getOperands())
        if (auto it = maps.find(v); it != maps.end())
          assign(op->getResult(0), Map(it->second));
      if (auto it = maps.find(op->getResult(0)); it != maps.end()) {
        Map map = it->second;
        for (Value v : op->getOperands())
          assign(v, map);
      }
      return;
    }
    if (isRowComposite(op))
      return relateComposite(op);
    if (auto broadcast = dyn_cast<BroadcastToOp>(op)) {
      Value x = broadcast.getX(), result = broadcast.getResult();
      if (!maps.contains(result) && maps.contains(x) && classes.areSame(shapeOf(result), space))
        assign(result, identity());
      if (auto it = maps.find(result); it != maps.end()) {
        size_t rank = shapeOf(x).size();
        assign(x, Map(it->second.end() - rank, it->second.end()));
      }
      return;
    }
    if (isView(op)) {
      auto source = unitReshape(op, classes);
      if (!source)
        return;
      Value x = op->getOperand(0), result = op->getResult(0);
      if (auto it = maps.find(x); it != maps.end()) {
        Map map(source->size(), -1);
        for (size_t i = 0; i < map.size(); ++i)
          if ((*source)[i] >= 0)
            map[i] = it->second[(*source)[i]];
        assign(result, map);
      } else if (auto it = maps.find(result); it != maps.end()) {
        Map map(shapeOf(x).size(), -1);
        for (size_t i = 0; i < source->size(); ++i)
          if ((*source)[i] >= 0)
            map[(*source)[i]] = it->second[i];
        assign(x, map);
      }
      return;
    }
    SmallVector<int64_t> axes = reducedAxes(op);
    if (axes.empty())
      return;
    auto it = maps.find(op->getOperand(0));
    if (it == maps.end()) {
      // Several reductions over the same rows are combined only through their results.
      if (maps.contains(op->getResult(0)) && classes.areSame(shapeOf(op->getOperand(0)), space))
        assign(op->getOperand(0), identity());
      return;
    }
    bool keep = op->getAttrOfType<BoolAttr>("keepdims").getValue();
    Map map;
    for (size_t d = 0; d < it->second.size(); ++d) {
      if (!llvm::is_contained(axes, int64_t(d)))
        map.push_back(it->second[d]);
      else if (keep)
        map.push_back(-1);
    }
    assign(op->getResult(0), map);
  }

  // The result and the first operand have the same map; weight and bias map to its last dimensions.
  void relateComposite(Operation *op) {
    Value x = op->getOperand(0), result = op->getResult(0);
    auto it = maps.find(x);
    if (it == maps.end())
      it = maps.find(result);
    if (it == maps.end())
      return;
    Map map = it->second;
    assign(x, map);
    assign(result, map);
    for (Value parameter : op->getOperands().drop_front())
      assign(parameter, Map(map.end() - shapeOf(parameter).size(), map.end()));
  }

  // Every reduction must run over the reduced dimensions of the space, and every result must have a map.
  bool complete() {
    for (Operation &op : body) {
      SmallVector<int64_t> axes = rowAxes(&op);
      if (axes.empty())
        continue;
      auto it = maps.find(op.getOperand(0));
      if (it == maps.end())
        return false;
      SmallVector<bool> over(space.size(), false);
      for (int64_t axis : axes)
        if (it->second[axis] >= 0)
          over[it->second[axis]] = true;
      for (size_t d = 0; d < space.size(); ++d) {
        bool present = llvm::is_contained(it->second, int(d));
        if (space[d] != Dim(1) && (over[d] != reducedDims[d] || !present))
          return false;
      }
    }
    for (Value yielded : body.getTerminator()->getOperands()) {
      Value v = skipReshapes(yielded);
      if (!maps.contains(yielded) && !maps.contains(v))
        return false;
    }
    return true;
  }

  /// Whether movement reads only values that have elements at any position: not those of reductions, contractions and
  /// attention, which the loops of the kernel compute at its points.
  bool movesOnlyElements(const IterationSpace &result) {
    llvm::DenseSet<Operation *> ofLoops; // computed from results of loops
    for (Operation &op : body.without_terminator()) {
      const bool usesLoops =
          llvm::any_of(op.getOperands(), [&](Value v) { return ofLoops.contains(v.getDefiningOp()); });
      const bool isLoop = !rowAxes(&op).empty() || isa<ContractOp, ScaledDotProductAttentionOp, Bf16TermsOp>(op);
      if (isLoop || usesLoops)
        ofLoops.insert(&op);
      const bool isHere = isLoop || op.hasTrait<ir::Elementwise>() || isAtPoint(result, &op);
      if (usesLoops && !isHere && maps.contains(op.getResult(0)))
        return false;
    }
    return true;
  }

  Block &body;
  const SizeClasses &classes;
  Shape space;
  SmallVector<bool> reducedDims;
  llvm::MapVector<Value, Map> maps;
  SmallVector<Value> worklist;
  bool consistent = true;
};

} // namespace

std::optional<IterationSpace> inferIterationSpace(Block &body, const SizeClasses &classes) {
  return Aligner(body, classes).run();
}

/// The classes of the function that the block is in; none if no op of the block gives sizes other names, perhaps while
/// it adds or drops dimensions of size 1.
static SizeClasses classesAround(Block &body) {
  auto sizes = [](Value v) {
    Shape shape = shapeOf(v);
    llvm::erase(shape, Dim(1));
    return shape;
  };
  auto mayRename = [&](Operation &op) { return isView(&op) && sizes(op.getOperand(0)) != sizes(op.getResult(0)); };
  return llvm::any_of(body, mayRename) ? SizeClasses(body.getParentOp()) : SizeClasses();
}

std::optional<IterationSpace> inferIterationSpace(Block &body) {
  return inferIterationSpace(body, classesAround(body));
}

IterationSpace withOnes(Block &body, const IterationSpace &a, llvm::ArrayRef<Dim> ones) {
  auto isOne = [&](const Dim &size) { return llvm::is_contained(ones, size); };
  IterationSpace dropped = a;
  for (auto &[v, map] : dropped.dims)
    for (int &d : map)
      if (d >= 0 && isOne(a.space[d]))
        d = -1;
  return merged(dropped, classesAround(body), isOne);
}

} // namespace burin::passes
