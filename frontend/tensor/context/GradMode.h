// The mode that NoGrad and EnableGrad set.
#pragma once

namespace burin::detail {
/// Whether this thread records calls, or in a trace, whether gradients flow back from them.
bool isGradEnabled();
} // namespace burin::detail
