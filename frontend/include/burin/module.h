// What layers and models are made of: parameters, buffers, children, modes.
#pragma once
#include "burin/callable.h"
#include "burin/observed.h"
#include <functional>

namespace burin {

namespace detail {
struct Cell;
} // namespace detail

/// A named place for a tensor that may be replaced: a weight, or state such as running statistics and counters. Copies
/// share the place.
///
/// In a traced function `value()` and `set()` work on a copy that belongs to the trace. A jitted function puts the
/// values that it has set into the parameters after each call; values that it only reads are constants of its code
/// until they have changed a few times, then inputs. See docs/state.md.
class BURIN_API Parameter {
public:
  Parameter() = default;
  /// State that compiled functions always take as an input, never as a constant: what changes from call to call.
  /// `name` is what graphs call it, if no module does, behind the name of `owner`.
  static Parameter state(Tensor value, const std::string &name = "", const Parameter *owner = nullptr);
  /// A float is a leaf that backward() computes the gradient of, unless it is not to be trained.
  explicit Parameter(Tensor value, bool requires_grad = true);
  bool defined() const { return cell != nullptr; }
  const Tensor &value() const;
  /// Replaces the value; the shape must stay, in a trace also the element type.
  void set(const Tensor &value, Location where = Location::current());
  /// Freezes or thaws it: without, nothing is computed or kept for its gradient.
  void requires_grad_(bool on, Location where = Location::current());
  operator const Tensor &() const { return value(); }
  const Tensor *operator->() const { return &value(); }

private:
  friend class Generator;
  std::shared_ptr<detail::Cell> cell;
};

/// Tensors by dotted names, in the order of registration.
class BURIN_API StateDict : public std::vector<std::pair<std::string, Tensor>> {
public:
  using vector::vector;
  const Tensor *find(std::string_view name) const;
  const Tensor &at(std::string_view name, Location where = Location::current()) const;
  /// All on a device, as Tensor::to.
  StateDict to(Device device, Location where = Location::current()) const;
  /// Those whose names begin with `prefix`, such as "optimizer.", under the rest of their names.
  StateDict part(std::string_view prefix) const;
  /// Adds these, with `prefix` before their names.
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
  /// `where` is what traces and errors show for a layer inside a Sequential.
  explicit Module(std::string kind = "Module", Location where = Location::current());

  /// Parameters and buffers of this module and its children: {"up.weight", …}.
  StateDict state_dict() const;
  /// Replaces them. With `strict`, names must match exactly; shapes must match always. All problems are reported at
  /// once, and then nothing is changed. Values are converted to the element type of what they replace.
  void load_state_dict(const StateDict &state, bool strict = true, Location where = Location::current());
  std::vector<Parameter> parameters() const;
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;

  /// This module as "", then all below it by dotted names, parents first. As torch.nn.Module.named_modules.
  std::vector<std::pair<std::string, Module>> named_modules() const;
  /// Calls `function` with all modules below this one, then with it. As torch.nn.Module.apply; for initial values:
  /// net.apply([](nn::Module &m) { if (m.kind() == "Linear") … m.named_parameters() … }).
  void apply(const std::function<void(Module &)> &function);
  /// Freezes (or thaws) all parameters: nothing is computed or kept for their gradients, and optimisers leave them.
  void requires_grad_(bool on = true, Location where = Location::current());
  void freeze(Location where = Location::current()) { requires_grad_(false, where); }
  /// How many numbers the parameters hold, those that are frozen left out on demand.
  int64_t count_parameters(bool trainable_only = false) const;

  /// Training mode (the default) matters to Dropout and BatchNorm, in all children too.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  /// Converts all parameters and buffers of floating point type.
  void to(DType dtype, Location where = Location::current());
  /// Moves all parameters and buffers to a device. An optimiser made before or after goes on there. As
  /// torch.nn.Module.to.
  void to(Device device, Location where = Location::current());

  /// The tree of modules with their sizes; then how many parameters there are.
  std::string str() const;
  const std::string &kind() const;
  /// Its name below the outermost module that it is registered in, as in state_dict(): "layers.3.linear1"; empty for
  /// that module itself.
  std::string path() const;
  /// Where it was constructed.
  const Location &place() const;

  struct State;

protected:
  Parameter register_parameter(std::string name, Tensor value, Location where = Location::current());
  /// State that is saved but not trained.
  Parameter register_buffer(std::string name, Tensor value, Location where = Location::current());
  template <std::derived_from<Module> M>
  M register_module(std::string name, M module, Location where = Location::current()) {
    adopt(std::move(name), module, where);
    return module;
  }
  /// What str() shows between the parentheses.
  void describe(std::string details);

private:
  friend class Sequential;
  friend class ModuleScope;
  void adopt(std::string name, const Module &child, const Location &where);
  std::string tree() const;
  void collect(const std::string &prefix, bool withBuffers, std::vector<std::pair<std::string, Parameter>> &into) const;
  std::shared_ptr<State> state;
};

/// While one lives, what this thread calls belongs to `module`, whose path errors, profiles and graphs show. All layers
/// of burin have one; a module of your own that calls functions wants one too:
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

/// A layer of any kind: a module, or a function from Tensor to Tensor.
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

/// Layers one after the other; named "0", "1", … unless names are given.
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

/// Modules of one type, named by their positions.
template <std::derived_from<Module> M> class ModuleList : public Module {
public:
  explicit ModuleList(Location where = Location::current())
      : Module("ModuleList", where), modules(new std::vector<M>) {}
  void push_back(M module, Location where = Location::current()) {
    modules->push_back(register_module(std::to_string(modules->size()), std::move(module), where));
  }
  size_t size() const { return modules->size(); }
  const M &operator[](size_t i) const { return modules->at(i); }
  auto begin() const { return modules->begin(); }
  auto end() const { return modules->end(); }

private:
  std::shared_ptr<std::vector<M>> modules;
};

} // namespace nn
} // namespace burin
