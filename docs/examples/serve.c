/* A program that serves a model: C, the runtime library, no compiler. */
#include <burin/runtime.h>
#include <stdio.h>

static int report(const burin_runtime_api *rt, burin_status *status) {
  if (!status)
    return 0;
  fprintf(stderr, "%s\n", rt->status_message(status));
  rt->status_release(status);
  return 1;
}

int main(void) {
  const burin_runtime_api *rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  burin_artifact *artifact = NULL;
  burin_session *session = NULL;
  burin_session_options options = {.struct_size = sizeof options, .threads = 1};
  if (!rt || report(rt, rt->artifact_load_file("model.plate", NULL, &artifact)) ||
      report(rt, rt->session_create(artifact, &options, &session)))
    return 1;

  static float images[3][28][28]; /* all black */
  int64_t shape[] = {3, 1, 28, 28};
  burin_tensor x = {.data = images, .shape = shape, .rank = 4, .dtype = BURIN_F32};
  burin_tensor y = {0}; /* no data: the session lends its own memory until its next run */
  if (report(rt, rt->session_run(session, &x, 1, &y, 1)))
    return 1;
  const float *probabilities = y.data;
  printf("%d images, probability of class 7 of the first: %.3f\n", (int)y.shape[0], probabilities[7]);

  rt->session_release(session);
  rt->artifact_release(artifact);
  return 0;
}
