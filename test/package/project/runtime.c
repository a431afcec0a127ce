/* A C program that uses the runtime: the library loads, and a failure is returned as a status. */
#include <burin/runtime.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const burin_runtime_api *rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  if (!rt || rt->size < sizeof *rt) {
    fprintf(stderr, "the library is older than the header\n");
    return 1;
  }
  burin_artifact *artifact = NULL;
  burin_status *status = rt->artifact_load_file("no-such-file.plate", NULL, &artifact);
  int refused =
      status && rt->status_code(status) == BURIN_IO && strstr(rt->status_message(status), "no-such-file.plate");
  printf("%s on %s: %s\n", rt->library_version(), rt->host_target(), rt->status_message(status));
  rt->status_release(status);
  return refused && !artifact ? 0 : 1;
}
