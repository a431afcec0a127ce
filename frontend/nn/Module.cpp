#include "burin/nn/module.h"
#include "burin/ops.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/context/ModuleContext.h"
#include "frontend/tensor/core/Cell.h"
#include "frontend/trace/Trace.h"
#include "ir/sizes/ErrorContext.h"
#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

namespace burin {

using detail::inScope;

namespace {
/// During its lifetime, parameters that this thread makes belong to a module with this mode.
class Registering {
public:
  explicit Registering(std::shared_ptr<const detail::Mode> mode)
      : mode(std::move(mode)), outer(std::exchange(innermost, this)) {}
  ~Registering() { innermost = outer; }
  Registering(const Registering &) = delete;
  /// Null if there is none.
  static std::shared_ptr<const detail::Mode> current() { return innermost ? innermost->mode : nullptr; }

private:
  const std::shared_ptr<const detail::Mode> mode;
  const Registering *const outer;
  static inline thread_local const Registering *innermost = nullptr;
};
} // namespace

Parameter::Parameter(Tensor value, bool requires_grad, Location where) : cell(std::make_shared<detail::Cell>()) {
  cell->mode = Registering::current();
  if (value.defined() && value.isTraced())
    throw Error(inScope(where), "Parameter",
                "the initial value of a parameter is a number, but this one is computed by the function that is being "
                "traced; create the parameter outside, or within a NoTrace scope");
  if (Trace *trace = Trace::active())
    trace->made.push_back(cell);
  Tensor held = detail::withoutEdge(value);
  if (requires_grad && value.defined() && isFloat(value.dtype()))
    held.requires_grad_();
  cell->store(std::move(held));
}

Parameter Parameter::state(Tensor value, const std::string &name, const Parameter *owner) {
  Parameter result(std::move(value), false, Location());
  result.cell->alwaysInput = true;
  result.cell->name = name;
  if (owner)
    result.cell->owner = owner->variable();
  return result;
}

const std::shared_ptr<detail::Cell> &Parameter::variable() const {
  const std::shared_ptr<detail::Cell> *at = &cell;
  while (*at && (*at)->tied)
    at = &(*at)->tied;
  return *at;
}
const void *Parameter::id() const { return variable().get(); }

void Parameter::tie(const Parameter &other, Location where) {
  const Location place = inScope(where);
  if (!cell || !other.cell)
    throw Error(place, "tie", "one of the parameters does not exist: its module was built without it");
  if (Trace::active())
    throw Error(place, "tie", "parameters are tied before the function that uses them is traced");
  if (value().shape(place) != other.value().shape(place))
    throw Error(place, "tie",
                "the parameter " + str(value().spec(place)) + " does not have the shape of " +
                    str(other.value().spec(place)));
  if (is(other))
    return;
  const std::shared_ptr<detail::Cell> former = variable();
  former->tied = other.variable();
  ++former->version;
  former->store({});
}

void Parameter::requires_grad_(bool on, Location where) {
  const std::shared_ptr<detail::Cell> &cell = variable();
  if (!cell)
    return;
  Tensor held = cell->value();
  held.requires_grad_(on, inScope(where));
  cell->store(std::move(held));
  ++cell->version;
}

Tensor Parameter::value() const {
  const std::shared_ptr<detail::Cell> &cell = variable();
  if (!cell)
    return {};
  Trace *trace = Trace::active();
  return trace ? trace->read(cell) : cell->value();
}

/// Values without an explicit device go to that of the value that they replace. States that follow their uses, such as
/// an optimiser's, continue to do so.
static Tensor likeHeld(const Tensor &given, const Tensor &held, const Location &where) {
  const detail::TensorState &old = *detail::Access::state(held), &state = *detail::Access::state(given);
  auto isStored = [](const detail::TensorState &s) { return std::holds_alternative<detail::StorageRef>(s.value); };
  if (!isStored(old) || !isStored(state))
    return given;
  if (old.follows)
    return detail::following(given);
  return detail::placed(state.follows ? given.to(detail::deviceOf(old), where) : given);
}

void Parameter::set(const Tensor &given, Location where) {
  const Location &place = inScope(where);
  const std::shared_ptr<detail::Cell> &cell = variable();
  if (!cell)
    throw Error(place, "set", "this parameter does not exist: the module was built without it");
  if (given.shape(place) != cell->value().shape(place))
    throw Error(place, "set",
                "the new value " + str(given.spec(place)) + " does not have the shape of " +
                    str(cell->value().spec(place)));
  if (Trace *trace = Trace::active())
    return trace->set(cell, given, place);
  if (given.isTraced())
    throw Error(place, "set", "this value belongs to a trace that is over; set it in the function that is traced");
  const Tensor value = likeHeld(given, cell->value(), place);
  detail::TapeEdge leaf = detail::edgeOf(cell->value());
  bool isLeaf = leaf.node && value.dtype(place) == cell->value().dtype(place);
  bool isTrained = leaf.node != nullptr;
  if (detail::cellChanges)
    detail::cellChanges->emplace_back(cell, cell->value());
  Tensor held = isLeaf ? detail::withEdge(value, leaf) : detail::withoutEdge(value);
  if (isTrained && !isLeaf && isFloat(value.dtype(place)))
    held.requires_grad_(true, place); // a new leaf if the element type has changed
  cell->store(std::move(held));
  ++cell->version;
}

namespace nn {

struct Module::State : detail::Mode {
  std::string kind, details;
  Location where;
  std::vector<std::pair<std::string, Parameter>> parameters, buffers;
  std::vector<std::pair<std::string, Module>> children;
  std::weak_ptr<const State> parent; // the first module that it was registered in, and its name there
  std::string name;
};

Module::Module(std::string kind, Location where) : state(std::make_shared<State>()) {
  state->kind = std::move(kind);
  state->where = where;
}

std::string Module::path() const { return pathOf(state); }

std::string Module::pathOf(std::shared_ptr<const State> at) {
  std::string path;
  while (std::shared_ptr<const State> parent = at->parent.lock()) {
    path.insert(0, path.empty() ? at->name : at->name + ".");
    at = parent;
  }
  return path;
}

static thread_local const Module *currentModule = nullptr;
static thread_local uint64_t scopeChanges = 0; // of the thread's module
static const Module *enter(const Module *module) {
  ++scopeChanges;
  return std::exchange(currentModule, module);
}

/// The module whose call ended last on this thread.
static thread_local std::weak_ptr<const Module::State> lastLeft;

static std::string contextOf(const Module *module) {
  const std::string path = module ? module->path() : std::string();
  return path.empty() ? path : "in the module " + path + ", " + module->kind();
}
static std::string errorContext() { return contextOf(currentModule); }
[[maybe_unused]] static const bool isContextSet = (burin::detail::setErrorContext(errorContext), true);

ModuleScope::ModuleScope(const Module &module) : outer(enter(&module)) {}
ModuleScope::~ModuleScope() {
  lastLeft = currentModule->state;
  enter(outer);
}

std::string Module::lastCalled() {
  const std::shared_ptr<const State> left = lastLeft.lock();
  const std::shared_ptr<const State> parent = left ? left->parent.lock() : nullptr;
  const State *current = currentModule ? currentModule->state.get() : nullptr;
  if (!parent || parent.get() == current)
    return "";
  bool isInside = !current;
  for (std::shared_ptr<const State> at = parent; at && !isInside; at = at->parent.lock())
    isInside = at.get() == current;
  return isInside ? pathOf(left) + ", " + left->kind : "";
}

const std::string &Module::kind() const { return state->kind; }
const Location &Module::place() const { return state->where; }
void Module::describe(std::string details) { state->details = std::move(details); }

/// Fixes a parameter's device, even if its value was created without one.
static Tensor stayingWhereItIs(const Tensor &value) {
  return value.defined() && !value.isTraced() ? detail::placed(value) : value;
}

static void checkName(const std::string &name, const auto &...lists) {
  auto isTaken = [&](const auto &list) {
    return std::any_of(list.begin(), list.end(), [&](auto &entry) { return entry.first == name; });
  };
  if (name.empty() || name.find('.') != std::string::npos || (isTaken(lists) || ...))
    throw std::invalid_argument("the name \"" + name + "\" is empty, contains a dot, or is taken in this module");
}

Parameter Module::register_parameter(std::string name, Tensor value, Location where) try {
  checkName(name, state->parameters, state->buffers, state->children);
  Registering registering(state);
  return state->parameters.emplace_back(std::move(name), Parameter(stayingWhereItIs(value), true, where)).second;
} catch (const std::invalid_argument &problem) {
  throw Error(inScope(where), "register_parameter", problem.what());
}

Parameter Module::register_buffer(std::string name, Tensor value, Location where) try {
  checkName(name, state->parameters, state->buffers, state->children);
  return state->buffers.emplace_back(std::move(name), Parameter(stayingWhereItIs(value), false, where)).second;
} catch (const std::invalid_argument &problem) {
  throw Error(inScope(where), "register_buffer", problem.what());
}

void Module::adopt(std::string name, const Module &child, const Location &where) try {
  checkName(name, state->parameters, state->buffers, state->children);
  if (child.state->parent.expired()) {
    child.state->parent = state;
    child.state->name = name;
  }
  state->children.emplace_back(std::move(name), child);
} catch (const std::invalid_argument &problem) {
  throw Error(inScope(where), "register_module", problem.what());
}

void Module::collect(const std::string &prefix, Kind kind, std::vector<std::pair<std::string, Parameter>> &into) const {
  if (kind != Kind::Buffers)
    for (const auto &[name, parameter] : state->parameters)
      into.emplace_back(prefix + name, parameter);
  if (kind != Kind::Parameters)
    for (const auto &[name, buffer] : state->buffers)
      into.emplace_back(prefix + name, buffer);
  for (const auto &[name, child] : state->children)
    child.collect(prefix + name + ".", kind, into);
}

/// Each variable under its first name.
std::vector<std::pair<std::string, Parameter>> Module::distinct(Kind kind) const {
  std::vector<std::pair<std::string, Parameter>> entries;
  collect("", kind, entries);
  std::set<const void *> seen;
  std::erase_if(entries, [&](const auto &entry) { return !seen.insert(entry.second.id()).second; });
  return entries;
}

StateDict Module::state_dict() const {
  std::vector<std::pair<std::string, Parameter>> entries;
  collect("", Kind::All, entries);
  StateDict result;
  for (const auto &[name, parameter] : entries)
    result.emplace_back(name, parameter.value());
  return result;
}

static std::vector<Parameter> withoutNames(const std::vector<std::pair<std::string, Parameter>> &entries) {
  std::vector<Parameter> result;
  for (const auto &[name, parameter] : entries)
    result.push_back(parameter);
  return result;
}
std::vector<std::pair<std::string, Parameter>> Module::named_parameters() const { return distinct(Kind::Parameters); }
std::vector<Parameter> Module::parameters() const { return withoutNames(named_parameters()); }
std::vector<std::pair<std::string, Parameter>> Module::named_buffers() const { return distinct(Kind::Buffers); }
std::vector<Parameter> Module::buffers() const { return withoutNames(named_buffers()); }
std::vector<std::pair<std::string, Module>> Module::named_children() const { return state->children; }

void Module::zero_grad(Location where) {
  for (const Parameter &parameter : parameters())
    if (parameter->requires_grad())
      parameter->set_grad(Tensor(), where);
}

/// One line with the first few of `names` and their number.
static std::string listed(const std::string &what, const std::vector<std::string> &names) {
  if (names.empty())
    return "";
  std::string line = "\n  " + what + " (" + std::to_string(names.size()) + "): ";
  for (size_t i = 0; i < names.size() && i < 8; ++i)
    line += (i ? ", " : "") + names[i];
  return line + (names.size() > 8 ? ", …" : "");
}

void Module::load_state_dict(const StateDict &given, bool strict, Location where) {
  const Location place = inScope(where);
  std::vector<std::pair<std::string, Parameter>> entries;
  collect("", Kind::All, entries);
  std::vector<std::string> missing, unexpected, wrong;
  std::vector<std::pair<Parameter, const Tensor *>> updates;
  for (auto &[name, parameter] : entries) {
    const Tensor *value = given.find(name);
    auto isOther = [&](const auto &entry) { return entry.second.is(parameter) && given.find(entry.first); };
    if (!value && std::ranges::any_of(entries, isOther))
      continue; // a tied parameter, which the file has under another name
    if (!value)
      missing.push_back(name);
    else if (value->shape(place) != parameter->shape(place))
      wrong.push_back(name + " is " + burin::str(value->shape(place)) + ", not " + burin::str(parameter->shape(place)));
    else
      updates.emplace_back(parameter, value);
  }
  for (const auto &[name, value] : given)
    if (std::none_of(entries.begin(), entries.end(), [&](auto &entry) { return entry.first == name; }))
      unexpected.push_back(name);
  if (!strict)
    missing.clear(), unexpected.clear();
  if (!missing.empty() || !unexpected.empty() || !wrong.empty())
    throw Error(place, "load_state_dict",
                "the tensors do not fit this " + state->kind + ":" + listed("missing", missing) +
                    listed("unexpected", unexpected) + listed("of the wrong shape", wrong) +
                    (wrong.empty()
                         ? "\n  load_state_dict(state, false) loads those that fit by name"
                         : "\n  build the module with the sizes of the file, or load the file that belongs to it"));
  for (auto &[parameter, value] : updates)
    parameter.set(value->to(parameter->device(place), place).to(parameter->dtype(place), place), place);
}

void Module::train(bool on) {
  state->isTraining = on;
  state->version = on ? 0 : 1; // modes may change back, and then the code compiled for them is used again
  for (auto &[name, child] : state->children)
    child.train(on);
}
bool Module::is_training() const {
  detail::observe(state);
  return state->isTraining;
}

void Module::to(DType dtype, Location where) {
  if (!isFloat(dtype))
    throw Error(inScope(where), "to", "parameters are floats, which do not become " + std::string(name(dtype)));
  std::vector<std::pair<std::string, Parameter>> entries;
  collect("", Kind::All, entries);
  for (auto &[name, parameter] : entries)
    if (isFloat(parameter->dtype()))
      parameter.set(parameter->to(dtype, where), where);
}

void Module::to(Device device, Location where) {
  const Location place = inScope(where);
  NoGrad noGrad; // new values are leaves
  std::vector<std::pair<std::string, Parameter>> entries;
  collect("", Kind::All, entries);
  for (auto &[name, parameter] : entries)
    parameter.set(parameter->to(device, place), place);
}

std::string Module::tree() const {
  std::string text = state->kind + "(" + state->details;
  for (const auto &[name, child] : state->children) {
    std::string inner = child.tree();
    for (size_t at = 0; (at = inner.find('\n', at)) != std::string::npos; at += 3)
      inner.replace(at, 1, "\n  ");
    text.append("\n  ").append(name).append(": ").append(inner);
  }
  return text + (state->children.empty() ? ")" : "\n)");
}

/// 1234567 as "1,234,567".
static std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;)
    digits.insert(at -= 3, ",");
  return digits;
}

std::string Module::str() const {
  const int64_t all = count_parameters(), trained = count_parameters(true);
  std::string text = tree() + "\n" + grouped(all) + (all == 1 ? " parameter" : " parameters");
  return all == trained ? text : text + ", " + grouped(all - trained) + " of them frozen";
}
std::ostream &operator<<(std::ostream &out, const Module &module) { return out << module.str(); }

std::vector<std::pair<std::string, Module>> Module::named_modules() const {
  std::vector<std::pair<std::string, Module>> all{{"", *this}};
  for (const auto &[name, child] : state->children)
    for (const auto &[inner, module] : child.named_modules()) {
      std::string path = name;
      if (!inner.empty())
        path.append(".").append(inner);
      all.emplace_back(std::move(path), module);
    }
  return all;
}

void Module::apply(const std::function<void(Module &)> &function) {
  for (auto &[name, child] : state->children)
    child.apply(function);
  function(*this);
}

void Module::requires_grad_(bool on, Location where) {
  for (Parameter parameter : parameters())
    if (isFloat(parameter->dtype()))
      parameter.requires_grad_(on, where);
}

int64_t Module::count_parameters(bool trainable_only) const {
  int64_t count = 0;
  for (const Parameter &parameter : parameters())
    if (!trainable_only || parameter->requires_grad())
      count += int64_t(parameter->numel());
  return count;
}

// ---- containers

Sequential::Sequential() : Module("Sequential", Location()), layers(new std::vector<AnyLayer>) {}

Sequential::Sequential(std::initializer_list<std::pair<std::string, AnyLayer>> list) : Sequential() {
  for (const auto &[name, layer] : list)
    push_back(name, layer);
}

void Sequential::push_back(std::string name, AnyLayer layer) {
  if (layer.module)
    register_module(std::move(name), *layer.module, layer.module->place());
  layers->push_back(std::move(layer));
}

Tensor Sequential::operator()(const Tensor &x, Location where) const {
  ModuleScope inSequence(*this);
  Tensor result = x;
  for (const AnyLayer &layer : *layers) {
    std::optional<ModuleScope> inModule;
    if (layer.module)
      inModule.emplace(*layer.module);
    // A layer's own line is more specific than that of the call of all layers.
    result = layer.call(result, layer.module && *layer.module->place().file ? layer.module->place() : where);
  }
  return result;
}

} // namespace nn

detail::ModuleContext detail::ModuleContext::current() {
  ModuleContext context;
  if (nn::currentModule)
    context.module = *nn::currentModule;
  return context;
}
std::string detail::ModuleContext::str() const { return nn::contextOf(module ? &*module : nullptr); }
detail::ModuleContext::Entered::Entered(const ModuleContext &context)
    : outer(nn::enter(context.module ? &*context.module : nullptr)) {}
detail::ModuleContext::Entered::~Entered() { nn::enter(outer); }

std::shared_ptr<const std::string> detail::moduleText() {
  static thread_local std::shared_ptr<const std::string> text;
  static thread_local uint64_t scope = 0; // at this number of changes
  if (nn::scopeChanges != scope) {
    scope = nn::scopeChanges;
    std::string current = nn::errorContext();
    text = current.empty() ? nullptr : std::make_shared<const std::string>(std::move(current));
  }
  return text;
}

std::string detail::afterModule() {
  const std::string last = nn::Module::lastCalled();
  return last.empty() ? last : "\n  after the call of the module " + last;
}

std::string detail::modulePath() { return nn::currentModule ? nn::currentModule->path() : std::string(); }

} // namespace burin
