// Tests that need a feature of the processor.
#pragma once
#include <string>

namespace burin::test {

/// Whether /proc/cpuinfo lists the flag, and BURIN_TEST_WITHOUT (flags separated by commas, to try the tests of another
/// machine) does not.
bool hasFeature(const std::string &flag);
/// Prints that the running case is skipped; the program then ends with the exit code that ctest takes for that.
void skipWithout(const std::string &flag);

} // namespace burin::test

/// First line of a test case: leaves it, skipped, where the processor lacks the feature. `tools/dev test` fails where a
/// test was skipped for a feature that is there.
#define REQUIRE_FEATURE(flag)                                                                                          \
  if (!burin::test::hasFeature(flag)) {                                                                                \
    burin::test::skipWithout(flag);                                                                                    \
    return;                                                                                                            \
  }
