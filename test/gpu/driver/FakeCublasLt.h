// What tests ask of cuBLASLt for tests.
#pragma once
#include <cstdint>
#include <string>

namespace burin::test::fake {

/// Products that have been computed since the process began.
int64_t products();
/// From now on the function of that name ("cublasLtMatmul") returns that result; "": none. FAKE_CUBLASLT_FAIL says it
/// for a process, as "cublasLtMatmul:13".
void failLibrary(const std::string &function, int result = 14);
/// Objects that are left, and what has been wrong with calls or products; "" if there is nothing. Forgets the latter.
std::string libraryProblems();

} // namespace burin::test::fake
