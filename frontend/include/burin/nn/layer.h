// The base of user-written modules.
#pragma once
#include "burin/nn/module.h"
#include <utility>

namespace burin::nn {

/// A module whose call runs forward(), with any arguments and result. What forward() calls belongs to this module in
/// errors, profiles and graphs.
///
///   struct Block : nn::Layer<Block> {
///     nn::Linear up = register_module("up", nn::Linear(64, 256)), down = register_module("down", nn::Linear(256, 64));
///     Tensor forward(const Tensor &x) const { return x + down(gelu(up(x))); }
///   };
///
/// Arguments in braces need their type: block(x, Shape{2, 3}).
template <class Derived> class Layer : public Module {
public:
  Layer() : Module("Module", Location()) {}
  explicit Layer(std::string kind, Location where = Location::current()) : Module(std::move(kind), where) {}

  template <class... Arguments>
  decltype(auto) operator()(Arguments &&...arguments) const
    requires requires(const Derived &self) { self.forward(std::forward<Arguments>(arguments)...); }
  {
    ModuleScope scope(*this);
    return static_cast<const Derived &>(*this).forward(std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  decltype(auto) operator()(Arguments &&...arguments)
    requires requires(Derived &self) { self.forward(std::forward<Arguments>(arguments)...); }
  {
    ModuleScope scope(*this);
    return static_cast<Derived &>(*this).forward(std::forward<Arguments>(arguments)...);
  }
};

} // namespace burin::nn
