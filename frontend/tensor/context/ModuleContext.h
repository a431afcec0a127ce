// The module that a thread is in, for work that continues later or on other threads.
#pragma once
#include "burin/nn/module.h"

namespace burin::detail {

/// The module in whose call a thread is. It keeps the module alive, so it must not be part of a tensor.
class ModuleContext {
public:
  /// That of this thread.
  static ModuleContext current();
  ModuleContext() = default; // outside of all modules
  /// "in the module encoder.layers.3, Linear", or "" outside of modules and in the outermost one.
  std::string str() const;

  /// During its lifetime the thread is in the module, which its errors then name.
  class Entered {
  public:
    explicit Entered(const ModuleContext &context);
    ~Entered();
    Entered(const Entered &) = delete;
    Entered &operator=(const Entered &) = delete;

  private:
    const nn::Module *outer;
  };

private:
  std::optional<nn::Module> module;
};

/// The text of the calling thread's context, or null if it is empty. One string for calls in one scope.
std::shared_ptr<const std::string> moduleText();

} // namespace burin::detail
