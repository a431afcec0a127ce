// A C++ program that uses only the runtime: includes both of its headers, and does not need the compiler.
#include <burin/dtype.h>
#include <burin/runtime.h>
#include <cstdio>

int main() {
  const burin_runtime_api *rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  if (!rt)
    return 1;
  burin_artifact *artifact = nullptr;
  burin_status *status = rt->artifact_load_memory("not an artifact", 15, nullptr, &artifact);
  bool refused = rt->status_code(status) == BURIN_BAD_ARTIFACT && !artifact;
  std::printf("%s: %s\n", rt->library_version(), rt->status_message(status));
  rt->status_release(status);
  static_assert(static_cast<int>(burin::DType::boolean) == BURIN_BOOL);
  return refused ? 0 : 1;
}
