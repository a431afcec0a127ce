#pragma once

namespace burin::bench {

/// Prints the overhead of eager calls.
void measureEager();

} // namespace burin::bench
