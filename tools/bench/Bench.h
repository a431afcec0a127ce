#pragma once

namespace burin::bench {

/// Measures burin alone and prints a table. An exit code.
int measureAll();

} // namespace burin::bench
