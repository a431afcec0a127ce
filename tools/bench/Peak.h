// The machine's limits, measured.
#pragma once

namespace burin::bench {

/// f32 fused multiply-adds of one core from registers, GFLOP/s, over about 5 ms.
double fmaPeak();

} // namespace burin::bench
