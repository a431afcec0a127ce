/* Tests the functions for states of the C interface from C. Returns NULL, or a message about the first failure. */
#include "burin/runtime.h"
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do                                                                                                                   \
    if (!(condition)) {                                                                                                \
      static char message[200];                                                                                        \
      snprintf(message, sizeof message, "CStates.c:%d: %s", __LINE__, #condition);                                     \
      return message;                                                                                                  \
    }                                                                                                                  \
  while (0)

static const burin_runtime_api *rt;
enum { kOn, kRows, kCount, kNone };

/* Whether the call failed with this code and a message that contains `part`. */
static int failed(burin_status *status, uint32_t code, const char *part) {
  int is = rt->status_code(status) == code && strstr(rt->status_message(status), part) != NULL;
  if (!is)
    fprintf(stderr, "%u: %s\n", rt->status_code(status), rt->status_message(status));
  rt->status_release(status);
  return is;
}

static int hasRows(burin_session *session, const float *expected) {
  burin_tensor value;
  return !rt->session_read_state(session, kRows, &value) && value.rank == 2 && value.shape[0] == 3 &&
         !memcmp(value.data, expected, 6 * sizeof *expected);
}

static const char *checkAccess(burin_artifact *artifact, burin_session *session) {
  CHECK(rt->artifact_state_count(artifact) == 4 && !rt->artifact_state(artifact, 4));
  CHECK(!strcmp(rt->artifact_state(artifact, kRows)->text, "f32[3, 2]"));
  burin_tensor value;
  CHECK(!rt->session_read_state(session, kCount, &value) && value.rank == 0 && *(int64_t *)value.data == 0);
  int64_t seven = 7, shape[] = {3, 2}, other[] = {2, 3};
  float rows[] = {6, 5, 4, 3, 2, 1};
  burin_tensor count = {&seven, NULL, 0, BURIN_I64, {0}}, all = {rows, shape, 2, BURIN_F32, {0}};
  CHECK(!rt->session_write_state(session, kCount, &count) && !rt->session_write_state(session, kRows, &all));
  CHECK(hasRows(session, rows));
  all.shape = other;
  CHECK(failed(rt->session_write_state(session, kRows, &all), BURIN_INVALID_ARGUMENT, "rows is f32[3, 2]"));
  CHECK(failed(rt->session_write_state(session, 4, &count), BURIN_INVALID_ARGUMENT, "4 states"));
  CHECK(failed(rt->session_read_state(NULL, 0, &value), BURIN_INVALID_ARGUMENT, "session"));
  return NULL;
}

static const char *checkReorder(burin_session *session) {
  const int64_t order[] = {2, 0, 2}, swap[] = {1, 0}, outside[] = {0, 3, 1};
  const float rows[] = {2, 1, 6, 5, 2, 1}, columns[] = {1, 2, 5, 6, 1, 2};
  CHECK(!rt->session_reorder_state(session, kRows, 0, order, 3) && hasRows(session, rows));
  CHECK(!rt->session_reorder_state(session, kRows, 1, swap, 2) && hasRows(session, columns));
  CHECK(failed(rt->session_reorder_state(session, kRows, 0, outside, 3), BURIN_INVALID_ARGUMENT, "index 3"));
  CHECK(failed(rt->session_reorder_state(session, kRows, 0, order, 2), BURIN_INVALID_ARGUMENT, "2 indices"));
  CHECK(failed(rt->session_reorder_state(session, kRows, 2, order, 3), BURIN_INVALID_ARGUMENT, "axis 2"));
  CHECK(failed(rt->session_reorder_state(session, kRows, 0, NULL, 3), BURIN_INVALID_ARGUMENT, "order"));
  CHECK(hasRows(session, columns));
  return NULL;
}

static const char *checkFiles(burin_session *session, burin_session *other, const char *const *paths) {
  const float initial[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 2, 5, 6, 1, 2};
  CHECK(!rt->session_save_states(session, paths[0]));
  CHECK(hasRows(other, initial) && !rt->session_load_states(other, paths[0]) && hasRows(other, columns));
  burin_tensor value;
  CHECK(!rt->session_read_state(other, kCount, &value) && *(int64_t *)value.data == 7);

  CHECK(!rt->session_reset_states(other) && hasRows(other, initial));
  CHECK(failed(rt->session_load_states(other, "no/such file"), BURIN_IO, "no/such file"));
  CHECK(failed(rt->session_load_states(other, paths[1]), BURIN_INVALID_ARGUMENT, "f32[2, 3] for the state rows"));
  CHECK(failed(rt->session_load_states(other, paths[2]), BURIN_INVALID_ARGUMENT, "i32[3, 2] for the state rows"));
  CHECK(failed(rt->session_load_states(other, paths[3]), BURIN_INVALID_ARGUMENT, "holds other, which is no state"));
  CHECK(failed(rt->session_load_states(other, paths[4]), BURIN_INVALID_ARGUMENT, "lacks the state count i64[]"));
  CHECK(failed(rt->session_load_states(other, paths[5]), BURIN_BAD_ARTIFACT, "cut off"));
  CHECK(failed(rt->session_load_states(other, paths[6]), BURIN_BAD_ARTIFACT, "on is bool"));
  CHECK(failed(rt->session_load_states(other, NULL), BURIN_INVALID_ARGUMENT, "path"));
  CHECK(failed(rt->session_load_states(NULL, paths[0]), BURIN_INVALID_ARGUMENT, "session"));
  CHECK(failed(rt->session_save_states(other, "no/such folder/x"), BURIN_IO, "no/such folder/x"));
  CHECK(failed(rt->session_save_states(other, NULL), BURIN_INVALID_ARGUMENT, "path"));
  CHECK(hasRows(other, initial)); /* the failed calls changed nothing */

  CHECK(!rt->session_copy_states(other, session) && hasRows(other, columns));
  CHECK(failed(rt->session_copy_states(other, NULL), BURIN_INVALID_ARGUMENT, "session"));
  return NULL;
}

const char *checkStates(const void *data, size_t bytes, const char *const *paths) {
  rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  burin_artifact *artifact = NULL, *again = NULL;
  burin_session *first = NULL, *second = NULL, *foreign = NULL;
  CHECK(!rt->artifact_load_memory(data, bytes, NULL, &artifact));
  CHECK(!rt->artifact_load_memory(data, bytes, NULL, &again));
  CHECK(!rt->session_create(artifact, NULL, &first) && !rt->session_create(artifact, NULL, &second));
  CHECK(!rt->session_create(again, NULL, &foreign));
  const char *failure = checkAccess(artifact, first);
  if (!failure)
    failure = checkReorder(first);
  if (!failure)
    failure = checkFiles(first, second, paths);
  if (!failure && !failed(rt->session_copy_states(foreign, first), BURIN_INVALID_ARGUMENT, "one loaded artifact"))
    failure = "CStates.c: states were copied between artifacts";
  rt->session_release(first);
  rt->session_release(second);
  rt->session_release(foreign);
  rt->artifact_release(artifact);
  rt->artifact_release(again);
  return failure;
}
