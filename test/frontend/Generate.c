/* Generates text in a process without the compiler: generate ARTIFACT PROMPTS STEPS greedy|sample.
 * PROMPTS is a file of 64-bit integers: the number of prompts, the longest length, the lengths, and the padded words of
 * each. Prints a line per step: a hash of all logits, then the next word of each prompt. The last line has the resident
 * memory in KB after 16 steps and at the end, and the median time of a step in microseconds. */
#include <burin/runtime.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const burin_runtime_api *rt;

static void check(burin_status *status) {
  if (!status)
    return;
  fprintf(stderr, "%s\n", rt->status_message(status));
  exit(1);
}

static uint64_t hashOf(const void *data, size_t bytes) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; i += 4) {
    uint32_t word;
    memcpy(&word, (const char *)data + i, 4);
    hash = (hash ^ word) * 1099511628211u;
  }
  return hash;
}

static long residentKb(void) {
  long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
    exit(1);
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static uint64_t seed = 88172645463325252u;
static double uniform(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return ((double)(seed >> 11) + .5) / 9007199254740992.0;
}

/* Returns the most likely word, or one sampled by the Gumbel-max method: the largest logit plus Gumbel noise. */
static int64_t choose(const float *logits, int64_t words, int isSampled) {
  int64_t best = 0;
  double most = -INFINITY;
  for (int64_t i = 0; i < words; ++i) {
    double value = logits[i] - (isSampled ? log(-log(uniform())) : 0);
    if (value > most)
      most = value, best = i;
  }
  return best;
}

static int byTime(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
  FILE *file = fopen(argv[2], "rb");
  int64_t sizes[2];
  if (!rt || !file || fread(sizes, 8, 2, file) != 2)
    return 2;
  const int64_t batch = sizes[0], longest = sizes[1];
  const int steps = atoi(argv[3]), isSampled = strcmp(argv[4], "sample") == 0;
  int64_t *positions = malloc(8 * (size_t)batch), *prompts = malloc(8 * (size_t)(batch * longest));
  if (fread(positions, 8, (size_t)batch, file) != (size_t)batch ||
      fread(prompts, 8, (size_t)(batch * longest), file) != (size_t)(batch * longest))
    return 2;
  fclose(file);

  burin_artifact *artifact;
  burin_session *prefill, *decode;
  check(rt->artifact_load_file(argv[1], NULL, &artifact));
  check(rt->session_create(artifact, NULL, &prefill));
  check(rt->session_function(prefill, "decode", &decode));
  int64_t *tokens = calloc((size_t)batch, 8), shape[2] = {batch, longest};
  double *times = malloc(sizeof(double) * (size_t)steps);
  long early = 0;
  burin_tensor given[2] = {{prompts, shape, 2, BURIN_I64, {0}}, {positions, shape, 1, BURIN_I64, {0}}}, logits = {0};
  check(rt->session_run(prefill, given, 2, &logits, 1));
  for (int step = 0;; ++step) {
    const int64_t words = logits.shape[1];
    printf("%016" PRIx64, hashOf(logits.data, 4 * (size_t)(batch * words)));
    for (int64_t b = 0; b < batch; ++b)
      printf(" %" PRId64, tokens[b] = choose((const float *)logits.data + b * words, words, isSampled));
    printf("\n");
    if (step == 16)
      early = residentKb();
    if (step == steps)
      break;
    burin_tensor next[2] = {{tokens, shape, 1, BURIN_I64, {0}}, {positions, shape, 1, BURIN_I64, {0}}};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    memset(&logits, 0, sizeof logits);
    check(rt->session_run(decode, next, 2, &logits, 1));
    clock_gettime(CLOCK_MONOTONIC, &end);
    times[step] = (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-3;
    for (int64_t b = 0; b < batch; ++b)
      ++positions[b];
  }
  qsort(times, (size_t)steps, sizeof *times, byTime);
  printf("%ld %ld %.1f\n", early, residentKb(), times[steps / 2]);
  rt->session_release(decode);
  rt->session_release(prefill);
  rt->artifact_release(artifact);
  free(tokens);
  free(times);
  free(positions);
  free(prompts);
  return 0;
}
