#include "burin/ops.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/GradMode.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/FunctionScope.h"
#include "frontend/trace/Origins.h"
#include "ir/dialect/SizePlaces.h"
#include "mlir/IR/Verifier.h"

namespace burin {

using detail::TensorState, detail::TracedValue;
using mlir::Value;

static thread_local Trace *current = nullptr;
static std::atomic<uint64_t> traceCount{0};

Trace *Trace::active() { return current; }
Trace::Recording::Recording(Trace &trace) : outer(current) { current = &trace; }
Trace::Recording::~Recording() { current = outer; }

NoTrace::NoTrace() : outer(std::exchange(current, nullptr)) {}
NoTrace::~NoTrace() { current = static_cast<Trace *>(outer); }

namespace detail {
bool isTracing() { return current != nullptr; }
Location placeOfTrace() { return current ? current->placeOfStart() : Location(); }
void noteRefused(const Error &error) {
  if (current)
    current->noteRefused(error);
}

void observe(const std::shared_ptr<const Observed> &state) {
  if (Trace *trace = Trace::active())
    trace->observe(state);
}
} // namespace detail

void Trace::observe(const std::shared_ptr<const detail::Observed> &state) {
  for (const Guard &guard : guards)
    if (guard.state == state)
      return;
  guards.push_back({state, state->version});
}

/// The element type that holds any number that a weak input may be.
static DType widest(DType dtype) { return isFloat(dtype) ? DType::f64 : dtype; }

static std::vector<std::string> completeNames(std::vector<std::string> names, size_t count, const std::string &stem,
                                              const Location &where) {
  if (names.size() > count)
    throw Error(where, "trace",
                std::to_string(names.size()) + " names were given for " + std::to_string(count) + " tensors");
  for (size_t i = names.size(); i < count; ++i)
    names.push_back(count == 1 ? stem : stem + std::to_string(i));
  for (size_t i = 0; i < count; ++i)
    if (names[i].empty() || std::find(names.begin(), names.begin() + i, names[i]) != names.begin() + i)
      throw Error(where, "trace", "the name \"" + names[i] + "\" is empty or used twice; give each tensor its own");
  return names;
}

/// Calls `visit` for the symbols of a shape that restrict it: those with a range, and those of expressions.
template <class F> static void eachRestriction(const Shape &shape, F visit) {
  for (const Dim &size : shape)
    for (const Dim::Symbol &symbol : size.symbols())
      if (symbol.min > 0 || symbol.max < INT64_MAX || !size.symbol())
        visit(symbol);
}

/// Checks that sizes are not negative, and that symbols of the same name have the same range.
static void checkRanges(std::span<const Trace::Input> inputs, const Location &where) {
  std::map<std::string, Dim::Symbol> known;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Dim &size : inputs[i].spec.shape)
      if (size.isStatic() && size.value() < 0)
        throw Error(where, "trace",
                    "input " + std::to_string(i) + " is " + str(inputs[i].spec) +
                        ", but a size is not negative\n  for a size that differs between calls write Dim(\"n\")");
  for (const Trace::Input &input : inputs)
    for (const Dim &size : input.spec.shape)
      for (const Dim::Symbol &symbol : size.symbols()) {
        const Dim::Symbol &first = known.try_emplace(symbol.name, symbol).first->second;
        if (first.min != symbol.min || first.max != symbol.max)
          throw Error(where, "trace",
                      "the sizes " + Dim(first.name, first.min, first.max).str() + " and " +
                          Dim(symbol.name, symbol.min, symbol.max).str() +
                          " of the inputs have one name and different ranges; use one Dim for both, or another name");
      }
}

Trace::Trace(std::shared_ptr<Graph::Data> given, std::string name, std::span<const Input> inputs,
             std::vector<std::string> inputNames, const detail::TensorNames &names, const Location &where)
    : id(++traceCount), began(where), graph(std::move(given)), index(graph->functions.size()),
      builder(&graph->context) {
  mlir::MLIRContext *context = &graph->context;
  mlir::Location location = detail::mlirLocation(context, where);
  inputNames = completeNames(std::move(inputNames), inputs.size(), "x", where);
  checkRanges(inputs, where);
  llvm::SmallVector<mlir::Type> types;
  graph->functions.push_back({name, {}, {}});
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorSpec spec = inputs[i].spec;
    if (inputs[i].weak)
      spec.dtype = widest(spec.dtype);
    types.push_back(ir::tensorType(context, spec));
    signature().inputs.push_back({inputNames[i], std::move(spec)});
  }
  if (!graph->module)
    graph->module = mlir::ModuleOp::create(location);
  builder.setInsertionPointToEnd(graph->module->getBody());
  function = mlir::func::FuncOp::create(builder, location, name, builder.getFunctionType(types, {}));
  mlir::Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  mlir::NamedAttrList places;
  for (size_t i = 0; i < inputs.size(); ++i)
    eachRestriction(signature().inputs[i].spec.shape, [&](const Dim::Symbol &symbol) {
      if (!*symbol.where.file)
        return;
      function.getArgument(i).setLoc(detail::mlirLocation(context, symbol.where));
      places.set(symbol.name, builder.getStringAttr(symbol.where.str()));
    });
  if (!places.empty())
    function->setAttr(ir::kSizePlacesAttr, places.getDictionary(context));
  for (const auto &[name, tensor] : names)
    if (tensor.defined())
      if (auto *storage = std::get_if<detail::StorageRef>(&detail::Access::state(tensor)->value))
        weightNames.try_emplace(storage->get(), name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value value = function.getArgument(i);
    arguments.push_back(detail::Access::make(TensorState{
        inputs[i].spec, inputs[i].weak, TracedValue{id, value.getAsOpaquePointer(), escapes.reference(value)}}));
  }
}

Tensor Trace::wrap(Value value) {
  return detail::Access::make(
      TensorState{ir::specOf(value), false, TracedValue{id, value.getAsOpaquePointer(), escapes.reference(value)}});
}

/// The tensor's value in this graph; a C++ number is converted to `dtype`.
Value Trace::valueOf(const Tensor &tensor, DType dtype, const Location &where) {
  const TensorState &state = detail::stateOf(tensor, where);
  if (auto *traced = std::get_if<TracedValue>(&state.value)) {
    if (traced->trace != id)
      throw Error(where, "trace",
                  "this tensor belongs to another trace; return it from the function that was traced, and pass it in");
    Value value = Value::getFromOpaquePointer(traced->value);
    auto holds = [&](FunctionScope *scope) { return scope->holds(value); };
    if (value.getParentBlock() != &function.front() && llvm::none_of(scopes, holds))
      throw Error(where, "trace",
                  "this tensor belongs to a branch, to one example of vmap, or to one step of a loop, which is over; "
                  "return it from there");
    return state.weak ? detail::castTo(builder, detail::mlirLocation(&graph->context, where), value, dtype) : value;
  }
  if (std::holds_alternative<detail::ScalarValue>(state.value))
    return scalarOf(state, dtype, where);
  return isReplayed ? liftedValue(tensor) : constantOf(state, where);
}

Value Trace::liftedValue(const Tensor &tensor) {
  Value &known = lifted[detail::Access::state(tensor).get()];
  if (!known) {
    known = function.front().addArgument(ir::tensorType(&graph->context, tensor.spec()), builder.getUnknownLoc());
    liftedFrom[known] = tensor; // keeps the key valid
  }
  return known;
}

Value Trace::scalarOf(const TensorState &state, DType dtype, const Location &where) {
  char bytes[8];
  detail::scalarBytes(state, dtype, bytes, where, "");
  return ir::createConstant(builder, detail::mlirLocation(&graph->context, where), {dtype, {}},
                            {bytes, byteWidth(dtype)});
}

void Trace::runOn(Device device, const char *op, const Location &where) {
  if (place && *place != device)
    throw Error(where, op,
                "a compiled function runs on one device, and this one on " + place->str() +
                    " because of what it has used before; " + device.str() +
                    " is another one. Move its arguments, or the module, with to()");
  place = device;
}

void Trace::runInScope(const Location &where) {
  if (std::optional<Device> device = detail::scopedDevice())
    runOn(*device, "trace", where);
}

/// A tensor from outside says where the function runs, unless it goes where it is used.
void Trace::runWhere(const TensorState &state, const char *op, const Location &where) {
  if (detail::follows(state))
    return;
  const Device device = detail::deviceOf(state);
  if (place && *place != device)
    throw Error(where.file && *where.file ? where : began, op,
                str(state.spec) + " is on " + device.str() + ", but the function that is being traced runs on " +
                    place->str() +
                    ", where its arguments are, or what it has used before;\n  move the tensor, or the "
                    "module that it belongs to, as in x.to(" +
                    detail::inSource(*place) + ")");
  place = device;
}

/// A captured tensor: one constant per storage, in the shape of its first use.
Value Trace::constantOf(const TensorState &state, const Location &where) {
  const detail::StorageRef &storage = std::get<detail::StorageRef>(state.value);
  runWhere(state, "trace", where);
  Value &known = constants[storage.get()];
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  if (!known) {
    const rt::SharedBuffer &buffer = detail::await(storage, where);
    auto at = weightNames.find(storage.get());
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.front());
    if (lastConstant)
      builder.setInsertionPointAfter(lastConstant);
    llvm::ArrayRef<char> bytes(static_cast<const char *>(buffer.data()), detail::byteCount(state.spec));
    captured.push_back(storage);
    known = ir::createConstant(builder, location, state.spec, bytes, at == weightNames.end() ? "" : at->second,
                               std::shared_ptr<const void>(storage));
    lastConstant = known.getDefiningOp();
  }
  if (OriginNotes *notes = state.node ? OriginNotes::of(*this) : nullptr)
    notes->leaf(known, state.node);
  if (ir::shapeOf(known) == state.spec.shape)
    return known;
  return ir::create(builder, location, "reshape", {known}, {{"shape", state.spec.shape}});
}

static bool isSame(Value a, Value b, int steps);

/// Whether two ops compute the same value from the same operands, apart from the names of sizes that they define.
static bool computeSame(mlir::Operation *a, mlir::Operation *b, int steps) {
  bool agree = a->getName() == b->getName() && a->getNumOperands() == b->getNumOperands() && a->getNumRegions() == 0 &&
               llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                            [&](const auto &pair) { return isSame(std::get<0>(pair), std::get<1>(pair), steps); });
  if (!agree)
    return false;
  mlir::NamedAttrList left(a->getAttrDictionary()), right(b->getAttrDictionary());
  if (const ir::OpInfo *info = ir::opInfo(a); info && info->newSize()) {
    left.erase(info->newSize()->name);
    right.erase(info->newSize()->name);
  }
  return left == right;
}
static bool isSame(Value a, Value b, int steps) {
  if (a == b)
    return true;
  auto left = llvm::dyn_cast<mlir::OpResult>(a), right = llvm::dyn_cast<mlir::OpResult>(b);
  return steps > 0 && left && right && left.getResultNumber() == right.getResultNumber() &&
         computeSame(left.getOwner(), right.getOwner(), steps - 1);
}

/// Records an op that defines a size once for the same operands, so that x[mask] and y[mask] have equal lengths.
/// Returns an earlier op equal to `made`, which is then erased, or `made`.
mlir::Operation *Trace::onceForSize(mlir::Operation *made) {
  constexpr int kSteps = 8; // depth of the comparison of operands
  for (mlir::Operation *known : sizing)
    if (known->getBlock() == made->getBlock() && computeSame(known, made, kSteps)) {
      made->erase();
      return known;
    }
  sizing.push_back(made);
  return made;
}

std::vector<Tensor> Trace::record(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                                  std::vector<ir::Attr> attrs, const Location &where) {
  std::vector<std::optional<TensorSpec>> specs;
  llvm::SmallVector<bool> weak;
  for (const Tensor *operand : operands) {
    const TensorState *state = operand ? &detail::stateOf(*operand, where) : nullptr;
    specs.push_back(state ? std::optional(state->spec) : std::nullopt);
    weak.push_back(state && state->weak);
    if (state && !isReplayed)
      runWhere(*state, info.name, where);
  }
  detail::CheckedCall call = detail::checkCall(info, std::move(specs), weak, std::move(attrs), where);
  llvm::SmallVector<Value> values;
  for (size_t i = 0; i < operands.size(); ++i)
    values.push_back(operands[i] ? valueOf(*operands[i], call.operands[i]->dtype, where) : Value());
  llvm::SmallVector<Value> created =
      detail::recordCall(builder, detail::mlirLocation(&graph->context, where), call, values);
  if (info.newSize())
    created = onceForSize(created[0].getDefiningOp())->getResults();
  std::vector<Tensor> results;
  for (Value value : created) {
    if (!info.newSize() && !llvm::is_contained(values, value))
      noteNew(value);
    results.push_back(wrap(value));
  }
  return results;
}

void Trace::noteNew(mlir::ValueRange values) {
  OriginNotes *notes = OriginNotes::of(*this);
  for (Value value : values) {
    if (detail::isGradEnabled())
      detached.erase(value); // of an op that was deleted
    else
      detached.insert(value);
    if (notes)
      notes->made(value);
  }
}

size_t Trace::depthOf(mlir::Block *block) const {
  auto at = llvm::find_if(scopes, [&](FunctionScope *scope) { return scope->block() == block; });
  return at == scopes.end() ? 0 : size_t(at - scopes.begin()) + 1;
}
bool Trace::isBefore(mlir::Operation *a, mlir::Operation *b) const {
  return a->getBlock() == b->getBlock() ? a->isBeforeInBlock(b) : depthOf(a->getBlock()) < depthOf(b->getBlock());
}

Dim Trace::newSize(const std::string &op, const Location &where) {
  if (!scopes.empty())
    throw Error(detail::inScope(where), op,
                "the size of its result depends on the data, which a branch, a loop or vmap cannot have; compute it "
                "before, or keep the size and mask what is not wanted");
  auto isTaken = [&](const std::string &name) {
    for (const NamedSpec &input : signature().inputs)
      for (const Dim &size : input.spec.shape)
        for (const Dim::Symbol &symbol : size.symbols())
          if (symbol.name == name)
            return true;
    return false;
  };
  std::string name;
  do
    name = op + "_" + std::to_string(newSizes[op]++);
  while (isTaken(name));
  return Dim(name);
}

void Trace::require(const Dim &left, const Dim &right, const Location &where) {
  if (left == right)
    return;
  if (!mayEqual(left, right))
    throw Error(where, "", "the sizes " + left.str() + " and " + right.str() + " must be equal");
  std::string place = ir::fileLine(detail::mlirLocation(&graph->context, where));
  mlir::Attribute check = builder.getStrArrayAttr({left.str(), right.str(), place});
  auto same = [&](mlir::Attribute known) { // regardless of the place
    auto parts = llvm::cast<mlir::ArrayAttr>(known);
    return parts.getValue().take_front(2) == llvm::cast<mlir::ArrayAttr>(check).getValue().take_front(2);
  };
  if (llvm::none_of(checks, same))
    checks.push_back(check);
}

Tensor Trace::reshapeUnproved(const Tensor &x, const Shape &shape, const Location &where) {
  Value value = valueOf(x, x.dtype(), where);
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  return wrap(ir::create(builder, location, "reshape", {value}, {{"shape", shape}}));
}

void Trace::setResults(std::span<const Tensor> results, std::vector<std::string> outputNames, const Location &where) {
  if (refused)
    throw *refused;
  if (unreadBackward)
    throw Error(*unreadBackward, "backward",
                "the gradients are removed when the traced function returns, but it has not used them;\n"
                "  call the optimiser's step() in the function as well, or return what grad() gives");
  if (results.empty())
    throw Error(where, "trace", "the function returns no tensor");
  outputNames = completeNames(std::move(outputNames), results.size(), "y", where);
  for (const Tensor &result : results)
    returned.push_back(valueOf(result, detail::stateOf(result, where).spec.dtype, where));
  addConditions(returned);
  for (size_t i = 0; i < results.size(); ++i)
    signature().outputs.push_back({outputNames[i], ir::specOf(returned[i])});
}

void Trace::check(const Tensor &condition, const std::string &message, const Location &where) {
  Tensor holds = reduce_all(condition, {}, false, where);
  conditions.push_back({valueOf(holds, DType::boolean, where), message, where});
}

void Trace::addConditions(llvm::MutableArrayRef<Value> results) {
  mlir::Block *block = builder.getInsertionBlock();
  for (Condition &condition : conditions)
    if (condition.holds.getParentBlock() == block) {
      if (results.empty())
        throw Error(condition.where, "check", "the branch or loop has no result that the check could go with");
      LocationScope scope(condition.where);
      Tensor result = burin::check(wrap(condition.holds), wrap(results[0]), condition.message, condition.where);
      results[0] = valueOf(result, result.dtype(), condition.where);
    }
}

void Trace::close(const Location &where) {
  llvm::SmallVector<Value> values = returned;
  resolveCells(values, where);
  mlir::func::ReturnOp::create(builder, detail::mlirLocation(&graph->context, where), values);
  function.setFunctionType(
      builder.getFunctionType(function.front().getArgumentTypes(), mlir::ValueRange(values).getTypes()));
  auto named = [&](const std::vector<NamedSpec> &list, llvm::ArrayRef<mlir::FlatSymbolRefAttr> ofStates) {
    llvm::SmallVector<mlir::DictionaryAttr> attributes;
    for (const NamedSpec &item : list)
      attributes.push_back(
          builder.getDictionaryAttr(builder.getNamedAttr("burin.name", builder.getStringAttr(item.name))));
    for (mlir::FlatSymbolRefAttr state : ofStates)
      attributes.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("burin.name", state.getAttr()), builder.getNamedAttr(ir::kStateAttr, state)}));
    return attributes;
  };
  function.setAllArgAttrs(named(signature().inputs, stateInputs));
  function.setAllResultAttrs(named(signature().outputs, stateOutputs));
  for (auto [storage, constant] : constants) // loops have copies of the constants that they use
    if (constant.use_empty())
      constant.getDefiningOp()->erase();
  if (!checks.empty())
    function->setAttr(ir::kChecksAttr, builder.getArrayAttr(checks));
  if (place && graph->device.value_or(*place) != *place)
    throw Error(where, "graph",
                "the functions of a program run on one device, but some run on " + graph->device->str() + " and @" +
                    signature().name + " on " + place->str() + "; move the modules with to()");
  if (place)
    graph->device = place;
  abandoned.clear();
}

Graph Trace::verified(std::shared_ptr<Graph::Data> graph, const Location &where) {
  if (mlir::failed(mlir::verify(*graph->module)))
    throw Error(where, "trace", "internal error: " + graph->takeDiagnostics());
  return Graph(std::move(graph));
}

void Trace::discard() {
  for (auto &gone : abandoned)
    (*gone)->dropAllReferences();
  abandoned.clear();
  function->dropAllReferences();
  function.erase();
  graph->functions.pop_back();
}

} // namespace burin
