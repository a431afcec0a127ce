// Support for tests that need a feature of the processor, or much time.
#pragma once
#include <cstdlib>
#include <string>

namespace burin::test {

/// Returns whether /proc/cpuinfo lists the flag and BURIN_TEST_WITHOUT does not. That variable (flags separated by
/// commas) simulates a processor without the features.
bool hasFeature(const std::string &flag);
/// Prints that the running case is skipped; the program then ends with the exit code that ctest takes for "skipped".
void skipWithout(const std::string &flag);

/// Whether `tools/dev test --long` runs.
inline bool isLong() { return std::getenv("BURIN_LONG_TESTS") != nullptr; }
/// Whether to try this one of many numbered cases: one of `parts`, and all of them with --long.
inline bool isSampled(size_t number, size_t parts) { return isLong() || number % parts == 0; }

} // namespace burin::test

/// First statement of a test case: skips the case if the processor lacks the feature. `tools/dev test` fails if a test
/// was skipped for a feature that the processor has.
#define REQUIRE_FEATURE(flag)                                                                                          \
  if (!burin::test::hasFeature(flag)) {                                                                                \
    burin::test::skipWithout(flag);                                                                                    \
    return;                                                                                                            \
  }

/// First statement of a test case that takes minutes: skips the case unless BURIN_LONG_TESTS is set.
#define REQUIRE_LONG_TESTS()                                                                                           \
  if (!std::getenv("BURIN_LONG_TESTS")) {                                                                              \
    burin::test::skipWithout("BURIN_LONG_TESTS");                                                                      \
    return;                                                                                                            \
  }
