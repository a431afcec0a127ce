/* Tests the C interface from C: the header is C11, and all functions are reached through the function table. Returns
 * NULL, or a message about the first failure. */
#include "burin/runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do                                                                                                                   \
    if (!(condition)) {                                                                                                \
      static char message[200];                                                                                        \
      snprintf(message, sizeof message, "CApi.c:%d: %s", __LINE__, #condition);                                        \
      return message;                                                                                                  \
    }                                                                                                                  \
  while (0)

static const burin_runtime_api *rt;

static uint32_t released(burin_status *status) {
  uint32_t code = rt->status_code(status);
  rt->status_release(status);
  return code;
}

static void countLog(void *ctx, int level, const char *message) { *(int *)ctx += message[0] != 0; }

static void *countedAllocate(void *ctx, size_t bytes, size_t alignment) {
  ++*(int *)ctx;
  return aligned_alloc(alignment, bytes);
}
static void countedRelease(void *ctx, void *data, size_t bytes) {
  --*(int *)ctx;
  free(data);
}

static void countStep(void *ctx, const burin_step_profile *p) {
  *(int *)ctx += p->kernel[0] && p->location[0] && p->end_ns >= p->start_ns;
}

static void serialFor(void *ctx, int64_t n, int64_t grain, void (*body)(void *, int64_t, int64_t, int), void *bodyCtx) {
  body(bodyCtx, 0, n, 0);
}

struct Done {
  volatile int count;
  uint32_t code;
  float first;
};
static void done(void *ctx, const burin_status *status, const burin_tensor *outputs, uint32_t count) {
  struct Done *d = ctx;
  d->code = rt->status_code(status);
  if (!status && count == 1)
    d->first = *(float *)outputs[0].data;
  __atomic_add_fetch(&d->count, 1, __ATOMIC_SEQ_CST);
}

static const char *checkErrors(const char *path) {
  burin_artifact *artifact = NULL;
  burin_status *status = rt->artifact_load_file("no such file", NULL, &artifact);
  CHECK(status && !artifact && rt->status_code(status) == BURIN_IO);
  CHECK(strstr(rt->status_message(status), "no such file"));
  rt->status_release(status);
  CHECK(released(rt->artifact_load_file(NULL, NULL, &artifact)) == BURIN_INVALID_ARGUMENT);
  CHECK(released(rt->artifact_load_file(path, NULL, NULL)) == BURIN_INVALID_ARGUMENT);
  CHECK(released(rt->artifact_load_memory("x", 1, NULL, &artifact)) == BURIN_BAD_ARTIFACT);
  CHECK(released(rt->session_run(NULL, NULL, 0, NULL, 0)) == BURIN_INVALID_ARGUMENT);
  CHECK(rt->status_code(NULL) == BURIN_OK && !strcmp(rt->status_message(NULL), "ok"));
  rt->status_release(NULL);
  rt->artifact_release(NULL);
  rt->session_release(NULL);
  return NULL;
}

static const char *checkSignature(burin_artifact *artifact) {
  CHECK(rt->artifact_input_count(artifact) == 1 && rt->artifact_output_count(artifact) == 1);
  const burin_tensor_info *x = rt->artifact_input(artifact, 0);
  CHECK(!strcmp(x->name, "x") && !strcmp(x->text, "f32[batch, 5]") && x->dtype == BURIN_F32);
  CHECK(x->rank == 2 && x->dims[0] == -1 && x->dims[1] == 5);
  CHECK(!rt->artifact_input(artifact, 1) && !rt->artifact_output(artifact, 1));
  CHECK(rt->artifact_symbol_count(artifact) == 1 && !rt->artifact_symbol(artifact, 1));
  const burin_symbol_info *batch = rt->artifact_symbol(artifact, 0);
  CHECK(!strcmp(batch->name, "batch") && batch->input == 0 && batch->axis == 0 && batch->max == INT64_MAX);
  int64_t seven = 7, shape[2];
  CHECK(!rt->artifact_input_shape(artifact, 0, &seven, 1, shape) && shape[0] == 7 && shape[1] == 5);
  CHECK(released(rt->artifact_input_shape(artifact, 0, &seven, 0, shape)) == BURIN_INVALID_ARGUMENT);
  CHECK(!strcmp(rt->artifact_producer(artifact), "burin test") && !strcmp(rt->artifact_target(artifact), "x86-64"));
  CHECK(!rt->artifact_metadata(artifact, "no such key"));
  return NULL;
}

static const char *checkRuns(burin_session *session) {
  float data[10] = {0}, result[10];
  int64_t shape[] = {2, 5}, wrong[] = {2, 6};
  burin_tensor x = {data, shape, 2, BURIN_F32, {0}}, y = {result, shape, 2, BURIN_F32, {0}}, owned = {0};
  uint32_t rank = 0;
  CHECK(!rt->session_output_shape(session, 0, &rank) && rt->session_arena_bytes(session) == 0);
  CHECK(!rt->session_bind(session, &x, 1));
  const int64_t *outputShape = rt->session_output_shape(session, 0, &rank);
  CHECK(rank == 2 && outputShape[0] == 2 && outputShape[1] == 5 && !rt->session_output_shape(session, 1, &rank));
  CHECK(rt->session_arena_bytes(session) == 128);

  CHECK(!rt->session_run(session, &x, 1, &y, 1));
  CHECK(result[0] > 1.64f && result[9] < 1.66f); /* exp(.5) */
  CHECK(!rt->session_run(session, &x, 1, &owned, 1));
  CHECK(owned.rank == 2 && owned.shape[1] == 5 && owned.dtype == BURIN_F32 && *(float *)owned.data == result[0]);
  x.shape = wrong;
  CHECK(released(rt->session_run(session, &x, 1, &y, 1)) == BURIN_INVALID_ARGUMENT);
  x.shape = shape;

  int steps = 0;
  CHECK(!rt->session_set_profile(session, countStep, &steps));
  CHECK(!rt->session_run(session, &x, 1, &y, 1) && steps == 3);
  CHECK(!rt->session_set_profile(session, NULL, NULL));

  struct Done ends = {0, 99, 0};
  owned.data = NULL;
  CHECK(!rt->session_run_async(session, &x, 1, &owned, 1, done, &ends));
  while (__atomic_load_n(&ends.count, __ATOMIC_SEQ_CST) < 1)
    ;
  CHECK(ends.code == BURIN_OK && ends.first == result[0]);
  x.shape = wrong;
  CHECK(!rt->session_run_async(session, &x, 1, &owned, 1, done, &ends));
  while (__atomic_load_n(&ends.count, __ATOMIC_SEQ_CST) < 2)
    ;
  CHECK(ends.code == BURIN_INVALID_ARGUMENT);
  CHECK(released(rt->session_run_async(session, &x, 1, &owned, 1, NULL, NULL)) == BURIN_INVALID_ARGUMENT);
  return NULL;
}

const char *checkCApi(const char *path, const void *data, size_t bytes) {
  CHECK(!burin_runtime_get(0) && !burin_runtime_get(BURIN_RUNTIME_VERSION + 1));
  rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  CHECK(rt && rt->version == BURIN_RUNTIME_VERSION && rt->size == sizeof *rt);
  CHECK(!strncmp(rt->library_version(), "burin ", 6) && rt->host_target()[0]);

  const char *failure = checkErrors(path);
  if (failure)
    return failure;

  int messages = 0, allocations = 0;
  burin_load_options load = {sizeof load, BURIN_LOAD_BORROW, {&messages, countLog}};
  burin_artifact *fromFile = NULL, *fromMemory = NULL;
  CHECK(!rt->artifact_load_file(path, NULL, &fromFile));
  CHECK(!rt->artifact_load_memory(data, bytes, &load, &fromMemory));
  failure = checkSignature(fromFile);
  if (failure)
    return failure;

  burin_session_options options = {
      sizeof options, 0,   {&allocations, countedAllocate, countedRelease}, {NULL, serialFor, 1}, {&messages, countLog},
      NULL,           NULL};
  burin_session *first = NULL, *second = NULL;
  CHECK(!rt->session_create(fromFile, NULL, &first));
  CHECK(!rt->session_create(fromMemory, &options, &second));
  rt->artifact_release(fromFile); /* the sessions hold references */
  rt->artifact_release(fromMemory);
  failure = checkRuns(first);
  if (!failure)
    failure = checkRuns(second);
  CHECK(allocations > 0 && messages > 0);
  rt->session_release(first);
  rt->session_release(second);
  CHECK(allocations == 0);
  return failure;
}
