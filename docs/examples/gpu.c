/* Runs an artifact on a GPU, with input and output there. */
#include <burin/runtime.h>
#include <stdio.h>

static const burin_runtime_api *rt;

static int report(burin_status *status) {
  if (!status)
    return 0;
  fprintf(stderr, "%s\n", rt->status_message(status));
  rt->status_release(status);
  return 1;
}

int main(void) {
  burin_artifact *artifact = NULL;
  burin_session *session = NULL;
  burin_session_options options = {.struct_size = sizeof options, .device = "cuda:0"};
  rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  if (!rt || report(rt->artifact_load_file("layer.plate", NULL, &artifact)) ||
      report(rt->session_create(artifact, &options, &session)))
    return 1;

  const burin_device host = {BURIN_CPU, 0, 0}, gpu = {BURIN_CUDA, 0, 0};
  float rows[4][3] = {{1, 2, 3}};
  float results[4][2];
  void *input = NULL, *output = NULL;
  if (report(rt->device_alloc(gpu, sizeof rows, NULL, &input)) ||
      report(rt->device_alloc(gpu, sizeof results, NULL, &output)) ||
      report(rt->device_copy(gpu, input, host, rows, sizeof rows, NULL)))
    return 1;
  int64_t in[] = {4, 3}, out[] = {4, 2};
  burin_tensor x = {.data = input, .shape = in, .rank = 2, .dtype = BURIN_F32, .device = gpu};
  burin_tensor y = {.data = output, .shape = out, .rank = 2, .dtype = BURIN_F32, .device = gpu};
  if (report(rt->session_run(session, &x, 1, &y, 1)) || /* copies nothing */
      report(rt->device_copy(host, results, gpu, output, sizeof results, NULL)))
    return 1;
  burin_device_memory memory;
  if (report(rt->device_memory(gpu, &memory)))
    return 1;
  printf("equal rows have equal results: %d, bytes of weights: %d\n",
         results[1][0] == results[2][0] && results[1][1] == results[3][1], (int)memory.weights);

  int failed = report(rt->device_free(gpu, input, NULL)) | report(rt->device_free(gpu, output, NULL));
  rt->session_release(session);
  rt->artifact_release(artifact);
  return failed;
}
