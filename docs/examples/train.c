/* Trains on the device, without the compiler: learner.plate is what programs.cpp has saved. */
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
static void draw(float points[32][2], int64_t inside[32]) {
  for (int i = 0; i < 32; ++i) {
    points[i][0] = between(-1, 1);
    points[i][1] = between(-1, 1);
    inside[i] = points[i][0] * points[i][0] + points[i][1] * points[i][1] < 0.6f;
  }
}

int main(void) {
  burin_artifact *artifact = NULL;
  burin_session *learn = NULL, *predict = NULL;
  burin_session_options options = {.struct_size = sizeof options, .threads = 1};
  rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  if (!rt || report(rt->artifact_load_file("learner.plate", NULL, &artifact)) ||
      report(rt->session_create(artifact, &options, &learn)) ||
      report(rt->session_function(learn, "predict", &predict))) /* the same weights */
    return 1;

  float points[32][2];
  int64_t inside[32], two[] = {32, 2}, one[] = {32};
  burin_tensor batch[] = {{.data = points, .shape = two, .rank = 2, .dtype = BURIN_F32},
                          {.data = inside, .shape = one, .rank = 1, .dtype = BURIN_I64}};
  float first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    burin_tensor loss = {0};
    draw(points, inside);
    if (report(rt->session_run(learn, batch, 2, &loss, 1)))
      return 1;
    last = *(const float *)loss.data;
    first = step ? first : last;
  }
  burin_tensor classes = {0};
  draw(points, inside);
  if (report(rt->session_run(predict, batch, 1, &classes, 1)))
    return 1;
  int right = 0;
  for (int i = 0; i < 32; ++i)
    right += ((const int64_t *)classes.data)[i] == inside[i];
  printf("%s, %s\n", last < first / 2 ? "the loss falls" : "the loss does not fall",
         right >= 28 ? "learned" : "not learned");
  if (report(rt->session_save_states(learn, "trained.safetensors")))
    return 1;
  rt->session_release(predict);
  rt->session_release(learn);
  rt->artifact_release(artifact);
  return 0;
}
