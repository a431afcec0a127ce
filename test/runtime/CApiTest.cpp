#include "test/runtime/Checks.h"
#include <unistd.h>

using namespace burin::rt;
using namespace burin::rt::test;

extern "C" const char *checkCApi(const char *path, const void *data, size_t bytes);

TEST_CASE("the C interface works from C") {
  std::vector<std::byte> file = threeSteps(5).bytes();
  std::string path = "c-api-" + std::to_string(::getpid()) + ".plate";
  requireOk(writeFile(path, file));
  const char *failure = checkCApi(path.c_str(), file.data(), file.size());
  ::unlink(path.c_str());
  INFO((failure ? failure : ""));
  CHECK(failure == nullptr);
}
