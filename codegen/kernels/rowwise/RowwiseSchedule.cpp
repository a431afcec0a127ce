#include "codegen/kernels/rowwise/RowwiseSchedule.h"
#include "passes/TargetIndependent.h"

using namespace mlir;
using namespace burin::ir;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace burin::codegen {

RowwiseSchedule::RowwiseSchedule(Block &body, const passes::IterationSpace &a, ArrayRef<Value> results,
                                 const Target &target)
    : body(body), alignment(a), space(a.space) {
  for (size_t d = 0; d < space.size(); ++d)
    (a.reduced[d] ? reduced : parallel).push_back(d);
  for (Value yielded : body.getTerminator()->getOperands())
    if (byteWidth(dtypeOf(yielded)) < byteWidth(narrowest))
      narrowest = dtypeOf(yielded);
  int64_t widest = 1;
  for (Operation &op : body)
    for (Value v : op.getResults())
      widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v)));
  for (BlockArgument v : body.getArguments())
    widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v)));
  // A register holds f32 lanes; wider elements take two registers.
  const int64_t laneBytes = std::clamp<int64_t>(widest, 2, 4);
  vectorWidth = target.lanes(laneBytes);
  taskWidth = passes::kTaskVectorBytes / laneBytes;
  lanesReduce = !reduced.empty() && reduced.back() == int(space.size()) - 1;
  findLevels(results);
  planScratch();
}

void RowwiseSchedule::findLevels(ArrayRef<Value> results) {
  llvm::DenseMap<Value, size_t> level; // number of reduction levels below a value
  for (Operation &op : body.without_terminator()) {
    size_t needed = 0;
    for (Value operand : op.getOperands())
      needed = std::max(needed, level.lookup(operand));
    if (!passes::reducedAxes(&op).empty()) {
      if (levels.size() <= needed)
        levels.resize(needed + 1);
      levels[needed].push_back(&op);
      ++needed;
    }
    for (Value result : op.getResults())
      level[result] = needed;
  }
  for (auto [i, v] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Value value = alignment.contains(v) ? Value(v) : passes::skipReshapes(v);
    bool full = llvm::any_of(alignment.dims.find(value)->second, [&](int d) { return d >= 0 && alignment.reduced[d]; });
    (full ? fullResults : pointResults).push_back({value, results[i]});
  }
}

void RowwiseSchedule::planScratch() {
  if (levels.empty() || fullResults.empty())
    if (levels.size() < 2)
      return;
  SmallVector<SmallVector<Value>> roots;
  for (auto &level : levels) {
    roots.emplace_back();
    for (Operation *op : level)
      roots.back().push_back(op->getOperand(0));
  }
  roots.emplace_back();
  for (auto &[value, pointer] : fullResults)
    roots.back().push_back(value);
  Dim count = 1;
  for (int d : reduced)
    count = count * space[d];
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    const OpInfo *info = opInfo(&op);
    if (!op.hasTrait<ir::Elementwise>() || info->domain != Domain::Float || !alignment.contains(op.getResult(0)))
      continue;
    ArrayRef<int> dims = alignment.dims.find(op.getResult(0))->second;
    if (llvm::count_if(dims, [&](int d) { return d >= 0 && alignment.reduced[d]; }) == 0)
      continue;
    int64_t walks = 0;
    for (auto &walk : roots)
      walks += needs(walk, op.getResult(0));
    reducesExpensive |= walks > needs(roots.back(), op.getResult(0));
    if (walks < 2)
      continue;
    // If lanes are columns, each element keeps a vector; otherwise room for two vectors serves the masked ends of rows.
    int64_t element = byteWidth(dtypeOf(op.getResult(0)));
    Dim bytes = ceildiv(lanesReduce ? count + Dim(2 * vectorWidth) : count * Dim(vectorWidth), 64) * Dim(64 * element);
    kept[op.getResult(0)] = {scratchBytes, bytes};
    scratchBytes = scratchBytes + bytes * Dim(lanesReduce ? kRowsTogether : 1);
  }
}

bool RowwiseSchedule::needs(ArrayRef<Value> roots, Value v, bool isKeptRead) const {
  SmallVector<Value> stack(roots);
  llvm::DenseSet<Value> seen;
  while (!stack.empty()) {
    Value next = stack.pop_back_val();
    if (next == v)
      return true;
    Operation *op = next.getDefiningOp();
    if (!op || !seen.insert(next).second || (isKeptRead && kept.count(next)) || !passes::reducedAxes(op).empty())
      continue;
    llvm::append_range(stack, op->getOperands());
  }
  return false;
}

bool RowwiseSchedule::hasUnalignedRows() const {
  if (!lanesReduce || reduced.size() != 1 || parallel.empty() || !space[reduced[0]].isStatic())
    return false;
  int64_t size = space[reduced[0]].value();
  return size % vectorWidth && size >= 8 * vectorWidth;
}

Value RowwiseSchedule::rowRead(ArrayRef<Value> roots) const {
  for (BlockArgument v : body.getArguments())
    if (isAlongRow(v) && isRow(v) && needs(roots, v, false))
      return v;
  return {};
}

bool RowwiseSchedule::isElementwise(ArrayRef<Value> roots) const {
  auto readsOwnPosition = [&](Operation *op) {
    return !passes::reducedAxes(op).empty() || op->hasTrait<ir::Elementwise>() || isa<FullOp>(op) ||
           passes::isAtPoint(alignment, op);
  };
  return llvm::all_of(body.without_terminator(), [&](Operation &op) {
    return readsOwnPosition(&op) || llvm::none_of(op.getResults(), [&](Value v) { return needs(roots, v, false); });
  });
}

bool RowwiseSchedule::readsSharedRow(ArrayRef<Value> roots) const {
  return llvm::any_of(body.getArguments(), [&](Value v) { return isAlongRow(v) && !isRow(v) && needs(roots, v); });
}

bool RowwiseSchedule::isAlongRow(Value v) const {
  auto dims = alignment.dims.find(v);
  return dims != alignment.dims.end() && !dims->second.empty() && dims->second.back() == reduced.back();
}

bool RowwiseSchedule::isRow(Value v) const {
  return !parallel.empty() && llvm::is_contained(alignment.dims.find(v)->second, parallel.back());
}

std::string RowwiseSchedule::text() const {
  std::string result;
  llvm::raw_string_ostream out(result);
  auto names = [&](auto ops) {
    llvm::interleave(ops, out, [&](Operation *op) { out << op->getName().stripDialect(); }, ", ");
  };
  out << "  space [";
  for (auto [d, size] : llvm::enumerate(space))
    out << (d ? ", " : "") << size.str() << (llvm::is_contained(reduced, int(d)) ? " reduced" : "");
  out << "], vectors of " << vectorWidth << (lanesReduce ? " along what is reduced\n" : "\n");
  for (auto [number, level] : llvm::enumerate(levels)) {
    out << "  walk " << number << ": ";
    names(level);
    out << "\n";
  }
  if (!fullResults.empty() && !levels.empty())
    out << "  walk " << levels.size() << ": " << fullResults.size() << " result(s) with all dimensions\n";
  for (auto &[v, slot] : kept)
    out << "  keeps " << (v.getDefiningOp() ? v.getDefiningOp()->getName().stripDialect() : "an operand") << ": "
        << slot.bytes.str() << " bytes of a row\n";
  return result;
}

} // namespace burin::codegen
