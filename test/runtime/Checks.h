// Checks shared by the tests of the runtime.
#pragma once
#include "test/runtime/Model.h"
#include <catch2/catch.hpp>

namespace burin::rt::test {

/// Fails the test with the message of the status.
inline void requireOk(const Status &status) {
  INFO(status.message());
  REQUIRE(status.ok());
}
inline bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace burin::rt::test
