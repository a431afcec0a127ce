/* Trains on the device, without the compiler: learner.plate is what programs.cpp has saved. All layers learn which
 * points lie within a circle; then the last one is tuned for a smaller circle. */
#include <burin/runtime.h>
#include <stdio.h>
#include <stdlib.h>

static const burin_runtime_api *rt;

static int report(burin_status *status) {
  if (!status)
    return 0;
  fprintf(stderr, "%s\n", rt->status_message(status));
  rt->status_release(status);
  return 1;
}

static float between(float low, float high) { return low + (high - low) * (float)rand() / (float)RAND_MAX; }

/* 32 points of the plane, and whether they lie within a circle. */
static void draw(float squaredRadius, float points[32][2], int64_t inside[32]) {
  for (int i = 0; i < 32; ++i) {
    points[i][0] = between(-1, 1);
    points[i][1] = between(-1, 1);
    inside[i] = points[i][0] * points[i][0] + points[i][1] * points[i][1] < squaredRadius;
  }
}

/* Trains for some steps, and counts which of 320 new points are classified correctly. Returns 1 after an error. */
static int learn(const char *layers, burin_session *train, burin_session *predict, float squaredRadius, int steps) {
  static float points[32][2];
  static int64_t inside[32];
  int64_t two[] = {32, 2}, one[] = {32};
  burin_tensor batch[] = {{.data = points, .shape = two, .rank = 2, .dtype = BURIN_F32},
                          {.data = inside, .shape = one, .rank = 1, .dtype = BURIN_I64}};
  for (int step = 0; step < steps; ++step) {
    burin_tensor loss = {0}; /* no data: the session lends its own memory */
    draw(squaredRadius, points, inside);
    if (report(rt->session_run(train, batch, 2, &loss, 1)))
      return 1;
  }
  int right = 0;
  for (int round = 0; round < 10; ++round) {
    burin_tensor classes = {0};
    draw(squaredRadius, points, inside);
    if (report(rt->session_run(predict, batch, 1, &classes, 1)))
      return 1;
    for (int i = 0; i < 32; ++i)
      right += ((const int64_t *)classes.data)[i] == inside[i];
  }
  printf("%s: %s\n", layers, right >= 288 ? "learned" : "not learned");
  return 0;
}

int main(void) {
  burin_artifact *artifact = NULL;
  burin_session *train = NULL, *tune = NULL, *predict = NULL;
  burin_session_options options = {.struct_size = sizeof options, .threads = 1};
  rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  if (!rt || report(rt->artifact_load_file("learner.plate", NULL, &artifact)) ||
      report(rt->session_create(artifact, &options, &train)) ||
      report(rt->session_function(train, "tune_head", &tune)) || /* the same weights */
      report(rt->session_function(train, "predict", &predict)))
    return 1;
  if (learn("all layers", train, predict, 0.6f, 400) || learn("last layer", tune, predict, 0.4f, 400))
    return 1;
  if (report(rt->session_save_states(train, "trained.safetensors")))
    return 1;
  rt->session_release(predict);
  rt->session_release(tune);
  rt->session_release(train);
  rt->artifact_release(artifact);
  return 0;
}
