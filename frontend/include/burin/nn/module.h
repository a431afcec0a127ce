// Modules, the base of layers and models: parameters, buffers, children, modes.
#pragma once
#include "burin/graph/callable.h"
#include <functional>

namespace burin {

namespace detail {
struct Cell;
} // namespace detail
namespace nn {
class Module;
} // namespace nn

/// A named variable for a tensor: a weight, or state such as running statistics and counters. Copies share the
/// variable.
///
/// In a traced function, `value()` and `set()` access a copy that belongs to the trace. A jitted function stores the
/// values that it has set in the parameters after each call. Values that it only reads are inputs of its code in
/// modules in training mode, else constants; after a few changes they become inputs. See docs/state.md.
class BURIN_API Parameter {
public:
  Parameter() = default;
  /// State that compiled functions always take as an input, never as a constant, because it changes in each call.
  /// Graphs call it `name`, after the name of `owner`, unless a module names it.
  static Parameter state(Tensor value, const std::string &name = "", const Parameter *owner = nullptr);
  /// A float is a leaf, for which backward() computes a gradient, unless `requires_grad` is false.
  explicit Parameter(Tensor value, bool requires_grad = true, Location where = Location::current());
  bool defined() const { return cell != nullptr; }
  /// The value now: a later set() or call of a jitted function gives the parameter another one. Other threads may call
  /// such functions at the same time: the value is one that a call has set, complete or pending.
  Tensor value() const;
  /// Replaces the value. The shape must stay the same, in a trace also the element type.
  void set(const Tensor &value, Location where = Location::current());
  // ---- in-place methods and operators: those of Tensor, and set() of the result. Return the parameter
  Parameter &operator+=(const detail::Operand &y) {
    return apply(y.where, [&](Tensor &x) { x += y; });
  }
  Parameter &operator-=(const detail::Operand &y) {
    return apply(y.where, [&](Tensor &x) { x -= y; });
  }
  Parameter &operator*=(const detail::Operand &y) {
    return apply(y.where, [&](Tensor &x) { x *= y; });
  }
  Parameter &operator/=(const detail::Operand &y) {
    return apply(y.where, [&](Tensor &x) { x /= y; });
  }
  Parameter &add_(const detail::Operand &y) { return *this += y; }
  Parameter &sub_(const detail::Operand &y) { return *this -= y; }
  Parameter &mul_(const detail::Operand &y) { return *this *= y; }
  Parameter &div_(const detail::Operand &y) { return *this /= y; }
  Parameter &add_(const Tensor &y, const Tensor &alpha, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.add_(y, alpha, where); });
  }
  Parameter &sub_(const Tensor &y, const Tensor &alpha, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.sub_(y, alpha, where); });
  }
  Parameter &fill_(const detail::Operand &y) {
    return apply(y.where, [&](Tensor &x) { x.fill_(y); });
  }
  Parameter &zero_(Location where = Location::current()) { return fill_({0, where}); }
  Parameter &copy_(const detail::Operand &y) {
    return apply(y.where, [&](Tensor &x) { x.copy_(y); });
  }
  Parameter &clamp_(const Tensor &low, const Tensor &high, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.clamp_(low, high, where); });
  }
  Parameter &lerp_(const Tensor &end, const Tensor &weight, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.lerp_(end, weight, where); });
  }
  Parameter &addcmul_(const Tensor &a, const Tensor &b, double value = 1, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.addcmul_(a, b, value, where); });
  }
  Parameter &addcdiv_(const Tensor &a, const Tensor &b, double value = 1, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.addcdiv_(a, b, value, where); });
  }
  Parameter &uniform_(double low = 0, double high = 1, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.uniform_(low, high, where); });
  }
  Parameter &normal_(double mean = 0, double deviation = 1, Location where = Location::current()) {
    return apply(where, [&](Tensor &x) { x.normal_(mean, deviation, where); });
  }

  /// Makes this parameter and its copies the same variable as `other`, of the same shape: one value, one gradient, one
  /// parameter for optimisers. state_dict() lists it under both names. Call it before optimisers and jitted functions
  /// use the parameter. As head.weight = embedding.weight in PyTorch.
  void tie(const Parameter &other, Location where = Location::current());
  /// Whether both are the same variable.
  bool is(const Parameter &other) const { return id() == other.id(); }
  /// Freezes or unfreezes it: a frozen parameter costs no gradient computation or memory.
  void requires_grad_(bool on, Location where = Location::current());
  operator Tensor() const { return value(); }
  // ---- those of the value; `->` has all methods of tensors: weight->median()
  Shape shape() const { return value().shape(); }
  Shape sizes() const { return shape(); }
  Size size(int64_t axis, Location where = Location::current()) const { return value().size(axis, where); }
  Size numel() const { return value().numel(); }
  int64_t dim() const { return value().rank(); }
  DType dtype() const { return value().dtype(); }
  Tensor grad(Location where = Location::current()) const { return value().grad(where); }
  Tensor detach(Location where = Location::current()) const { return value().detach(where); }
  template <Arithmetic T = double> T item(Location where = Location::current()) const { return value().item<T>(where); }
  Tensor operator[](const Indices &indices) const { return value()[indices]; }
  template <class... Rest> Tensor operator()(const detail::FirstIndex &first, const Rest &...rest) const {
    return value()(first, rest...);
  }
  Tensor to(DType dtype, Location where = Location::current()) const { return value().to(dtype, where); }
  Tensor t(Location where = Location::current()) const { return value().t(where); }
  Tensor view(const Shape &shape, Location where = Location::current()) const { return value().reshape(shape, where); }
  Tensor reshape(const Shape &shape, Location where = Location::current()) const {
    return value().reshape(shape, where);
  }
  Tensor flatten(int64_t start = 0, int64_t end = -1, Location where = Location::current()) const {
    return value().flatten(start, end, where);
  }
  Tensor unsqueeze(const IntList &axes, Location where = Location::current()) const {
    return value().unsqueeze(axes, where);
  }
  Tensor expand(const Shape &shape, Location where = Location::current()) const { return value().expand(shape, where); }
  Tensor abs(Location where = Location::current()) const { return value().abs(where); }
  Tensor exp(Location where = Location::current()) const { return value().exp(where); }
  Tensor square(Location where = Location::current()) const { return value().square(where); }
  Tensor pow(const Tensor &exponent, Location where = Location::current()) const {
    return value().pow(exponent, where);
  }
  Tensor sum(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const {
    return value().sum(std::move(axes), keepdims, where);
  }
  Tensor mean(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const {
    return value().mean(std::move(axes), keepdims, where);
  }
  Tensor norm(double p = 2, Axes axes = {}, bool keepdims = false, Location where = Location::current()) const {
    return value().norm(p, std::move(axes), keepdims, where);
  }
  bool requires_grad() const { return value().requires_grad(); }
  auto operator->() const {
    struct Held {
      Tensor tensor;
      const Tensor *operator->() const { return &tensor; }
    };
    return Held{value()};
  }

private:
  friend class Generator;
  friend class nn::Module;
  /// Sets the value that `change` makes of it.
  Parameter &apply(const Location &where, auto change) {
    Tensor changed = value();
    change(changed);
    set(changed, where);
    return *this;
  }
  const std::shared_ptr<detail::Cell> &variable() const;
  const void *id() const;
  std::shared_ptr<detail::Cell> cell; // to be used by variable(), which follows ties
};

/// Tensors by dotted names, in the order of registration.
class BURIN_API StateDict : public std::vector<std::pair<std::string, Tensor>> {
public:
  using vector::vector;
  const Tensor *find(std::string_view name) const;
  const Tensor &at(std::string_view name, Location where = Location::current()) const;
  /// Moves all tensors to a device, see Tensor::to.
  StateDict to(Device device, Location where = Location::current()) const;
  /// The entries whose names begin with `prefix`, such as "optimizer.", without the prefix.
  StateDict part(std::string_view prefix) const;
  /// Adds entries, with `prefix` before their names.
  void add(std::string_view prefix, const StateDict &entries);
};

namespace nn {

/// The base of layers and models. A handle: copies share parameters, modes and children.
///
///   struct Block : nn::Module {
///     nn::Linear up = register_module("up", nn::Linear(64, 256)), down = register_module("down", nn::Linear(256, 64));
///     Tensor operator()(const Tensor &x) const { return x + down(gelu(up(x))); }
///   };
class BURIN_API Module {
public:
  /// Traces and errors show `where` for a layer inside a Sequential.
  explicit Module(std::string kind = "Module", Location where = Location::current());

  /// Parameters and buffers of this module and its children: {"up.weight", …}.
  StateDict state_dict() const;
  /// Replaces them. With `strict`, names must match exactly, except that one name of a tied parameter is enough; shapes
  /// must always match. All problems are reported
  /// together, and then nothing is changed. Values are converted to the element types of the replaced ones.
  void load_state_dict(const StateDict &state, bool strict = true, Location where = Location::current());
  /// Each parameter once, also if it is tied to another one or belongs to a module that is registered twice.
  std::vector<Parameter> parameters() const;
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;
  std::vector<Parameter> buffers() const;
  std::vector<std::pair<std::string, Parameter>> named_buffers() const;
  /// Removes the gradients of all parameters.
  void zero_grad(Location where = Location::current());

  /// The modules that are registered in this one, by name.
  std::vector<std::pair<std::string, Module>> named_children() const;
  /// This module as "", followed by all descendants by dotted names, parents first. As torch.nn.Module.named_modules.
  std::vector<std::pair<std::string, Module>> named_modules() const;
  /// Calls `function` for all descendants, then for this module. As torch.nn.Module.apply; for initial values:
  /// net.apply([](nn::Module &m) { if (m.kind() == "Linear") … m.named_parameters() … }).
  void apply(const std::function<void(Module &)> &function);
  /// Freezes (or unfreezes) all parameters: no gradients are computed, and optimisers skip them.
  void requires_grad_(bool on = true, Location where = Location::current());
  void freeze(Location where = Location::current()) { requires_grad_(false, where); }
  /// Number of elements of all parameters, or of those that are not frozen.
  int64_t count_parameters(bool trainable_only = false) const;

  /// Training mode (the default) affects Dropout and BatchNorm, also in all children.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  /// Converts all parameters and buffers of floating point type.
  void to(DType dtype, Location where = Location::current());
  /// Moves all parameters and buffers to a device; the state of optimisers follows. As torch.nn.Module.to.
  void to(Device device, Location where = Location::current());

  /// The tree of modules with their sizes, and the number of parameters.
  std::string str() const;
  const std::string &kind() const;
  /// Path from the outermost module in which this one is registered, as in state_dict(): "layers.3.linear1"; empty for
  /// the outermost module.
  std::string path() const;
  /// The location of the constructor call.
  const Location &place() const;

  struct State;
  /// The module whose call ended last on this thread, as "layers.3.linear1, Linear"; empty if the current call is known
  /// to be of that module's parent, or of none that contains it. For errors in modules without a ModuleScope.
  static std::string lastCalled();

protected:
  Parameter register_parameter(std::string name, Tensor value, Location where = Location::current());
  /// Registers state that is saved but not trained.
  Parameter register_buffer(std::string name, Tensor value, Location where = Location::current());
  template <std::derived_from<Module> M>
  M register_module(std::string name, M module, Location where = Location::current()) {
    adopt(std::move(name), module, where);
    return module;
  }
  /// Sets the text that str() shows in parentheses.
  void describe(std::string details);

private:
  friend class Sequential;
  friend class ModuleScope;
  void adopt(std::string name, const Module &child, const Location &where);
  static std::string pathOf(std::shared_ptr<const State> at);
  std::string tree() const;
  enum class Kind { Parameters, Buffers, All };
  void collect(const std::string &prefix, Kind kind, std::vector<std::pair<std::string, Parameter>> &into) const;
  std::vector<std::pair<std::string, Parameter>> distinct(Kind kind) const;
  std::shared_ptr<State> state;
};

/// The tree of modules: module.str().
BURIN_API std::ostream &operator<<(std::ostream &, const Module &module);

/// During its lifetime, calls of this thread belong to `module`, whose path errors, profiles and graphs show. All
/// layers of burin have one; custom modules that call functions should, too. An error of a call in a module without one
/// says after which module's call it comes.
///
///   Tensor operator()(const Tensor &x) {
///     nn::ModuleScope scope(*this);
///     return relu(norm(x) + x);
///   }
class BURIN_API ModuleScope {
public:
  explicit ModuleScope(const Module &module);
  ~ModuleScope();
  ModuleScope(const ModuleScope &) = delete;
  ModuleScope &operator=(const ModuleScope &) = delete;

private:
  const Module *outer;
};

/// A layer: a module, or a function from Tensor to Tensor.
class AnyLayer {
public:
  template <class F>
    requires(!std::same_as<std::decay_t<F>, AnyLayer> && detail::takes<std::decay_t<F>, 1>)
  AnyLayer(F &&layer)
      : call([layer](const Tensor &x, const Location &where) mutable -> Tensor {
          return detail::invoke(layer, where, x);
        }) {
    if constexpr (std::derived_from<std::decay_t<F>, Module>)
      module = layer;
  }
  std::optional<Module> module;
  std::function<Tensor(const Tensor &, const Location &)> call;
};

/// A sequence of layers, named "0", "1", … unless names are given.
class BURIN_API Sequential : public Module {
public:
  Sequential();
  template <class First, class... Rest>
    requires(!std::same_as<std::decay_t<First>, Sequential> || sizeof...(Rest) > 0) &&
            std::convertible_to<First, AnyLayer> && (std::convertible_to<Rest, AnyLayer> && ...)
  explicit Sequential(First &&first, Rest &&...rest) : Sequential() {
    push_back(AnyLayer(std::forward<First>(first)));
    (push_back(AnyLayer(std::forward<Rest>(rest))), ...);
  }
  Sequential(std::initializer_list<std::pair<std::string, AnyLayer>> layers);

  void push_back(AnyLayer layer) { push_back(std::to_string(size()), std::move(layer)); }
  void push_back(std::string name, AnyLayer layer);
  size_t size() const { return layers->size(); }
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;

private:
  std::shared_ptr<std::vector<AnyLayer>> layers;
};

/// A list of modules of one type, named by position.
template <std::derived_from<Module> M> class ModuleList : public Module {
public:
  explicit ModuleList(Location where = Location::current())
      : Module("ModuleList", where), modules(new std::vector<M>) {}
  void push_back(M module, Location where = Location::current()) {
    modules->push_back(register_module(std::to_string(modules->size()), std::move(module), where));
  }
  size_t size() const { return modules->size(); }
  const M &operator[](size_t i) const {
    if (i >= size())
      throw Error(place(), "ModuleList",
                  "there is no module " + std::to_string(i) + " among " + std::to_string(size()));
    return (*modules)[i];
  }
  auto begin() const { return modules->begin(); }
  auto end() const { return modules->end(); }

private:
  std::shared_ptr<std::vector<M>> modules;
};

/// Modules of one type by names, in the order of insertion. As torch.nn.ModuleDict.
template <std::derived_from<Module> M> class ModuleDict : public Module {
public:
  explicit ModuleDict(Location where = Location::current())
      : Module("ModuleDict", where), modules(new std::vector<std::pair<std::string, M>>) {}
  void insert(std::string name, M module, Location where = Location::current()) {
    M registered = register_module(name, std::move(module), where);
    modules->emplace_back(std::move(name), std::move(registered));
  }
  size_t size() const { return modules->size(); }
  bool contains(std::string_view name) const { return find(name); }
  const M &operator[](std::string_view name) const {
    if (const M *module = find(name))
      return *module;
    throw Error(place(), "ModuleDict", "there is no module \"" + std::string(name) + "\"");
  }
  /// Over pairs of names and modules.
  auto begin() const { return modules->begin(); }
  auto end() const { return modules->end(); }

private:
  const M *find(std::string_view name) const {
    for (const auto &[key, module] : *modules)
      if (key == name)
        return &module;
    return nullptr;
  }
  std::shared_ptr<std::vector<std::pair<std::string, M>>> modules;
};

/// A list of parameters, named by position. As torch.nn.ParameterList.
class ParameterList : public Module {
public:
  explicit ParameterList(Location where = Location::current())
      : Module("ParameterList", where), list(new std::vector<Parameter>) {}
  Parameter append(Tensor value, Location where = Location::current()) {
    return list->emplace_back(register_parameter(std::to_string(list->size()), std::move(value), where));
  }
  size_t size() const { return list->size(); }
  const Parameter &operator[](size_t i) const {
    if (i >= size())
      throw Error(place(), "ParameterList",
                  "there is no parameter " + std::to_string(i) + " among " + std::to_string(size()));
    return (*list)[i];
  }
  auto begin() const { return list->begin(); }
  auto end() const { return list->end(); }

private:
  std::shared_ptr<std::vector<Parameter>> list;
};

} // namespace nn
} // namespace burin
