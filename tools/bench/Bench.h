#pragma once

namespace burin::bench {

/// What eager calls cost, printed.
void measureEager();

} // namespace burin::bench
