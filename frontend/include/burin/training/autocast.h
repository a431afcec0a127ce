// Mixed precision: products in 16 bits, sums and parameters in f32.
//
//   optim::GradScaler scaler;                      // for f16; bf16 needs none
//   auto step = jit([&](const Tensor &x, const Tensor &y) {
//     Tensor loss;
//     {
//       Autocast scope(f16);
//       loss = cross_entropy(net(x), y);
//     }
//     scaler.scale(loss).backward();
//     scaler.step(optimizer);
//     scaler.update();
//     optimizer.zero_grad();
//     return loss;
//   });
#pragma once
#include "burin/training/optim.h"

namespace burin {

/// During its lifetime, the products that this thread calls or traces (matmul, dot_general, addmm, linear, conv,
/// conv_transpose, scaled_dot_product_attention, PReLU, and layers made of them, recurrent ones too) convert f32
/// operands, biases and states included, to `dtype` and return results of that type. Ops that need more precision (exp,
/// log, pow, softmax, norms, sums, means and losses) convert 16-bit operands to f32. All other ops keep the types of
/// their operands. Parameters stay in f32, and so do their gradients. Gradients are computed in the types of the
/// forward pass, in whatever scope backward() is called.
///
/// Throws for a type other than f16 and bf16. Source: torch.autocast.
class BURIN_API Autocast {
public:
  explicit Autocast(DType dtype, Location where = Location::current());
  /// With `enabled` false: a nested scope in which all ops keep the types of their operands.
  Autocast(DType dtype, bool enabled, Location where = Location::current());
  ~Autocast();
  Autocast(const Autocast &) = delete;
  Autocast &operator=(const Autocast &) = delete;

private:
  std::optional<DType> outer;
};

namespace optim {

/// Options of GradScaler: the initial scale, and its factors after good steps and after a bad one.
struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000; ///< consecutive good steps after which the scale grows
};
/// Scales the loss, so that small gradients do not underflow in f16. A step with an infinite or NaN gradient changes
/// neither parameters nor the optimiser's state, and lowers the scale. Nothing waits for a value; scale and counters
/// are states of compiled steps. Source: Micikevicius et al. 2018, torch.amp.GradScaler.
class BURIN_API GradScaler {
public:
  explicit GradScaler(GradScalerOptions options = {}, Location where = Location::current());

  /// loss · scale.
  Tensor scale(const Tensor &loss, Location where = Location::current()) const;
  /// Divides the gradients of backward() by the scale, for clipping. Otherwise step() does it.
  void unscale_(Optimizer &optimizer, Location where = Location::current());
  /// Updates the parameters, unless a gradient is not finite.
  void step(Optimizer &optimizer, Location where = Location::current());
  /// Lowers the scale if a gradient was not finite since the last update; otherwise raises it after growth_interval
  /// steps.
  void update(Location where = Location::current());
  /// The scale. Waits for the value.
  double get_scale(Location where = Location::current()) const;

  /// "scale" f32[], "_growth_tracker" i32[].
  StateDict state_dict() const;
  void load_state_dict(const StateDict &state, Location where = Location::current());

private:
  struct State;
  std::shared_ptr<State> state;
};

} // namespace optim
} // namespace burin
