// Machine code for the tests: compiled into an image like those that the compiler writes.
#include <stdint.h>

float expf(float);

static const float *identity(const float *p) { return p; }
// A pointer in data, for which the image needs a relative relocation.
static const float *(*volatile relocated)(const float *) = identity;

// y[r, i] = x[r, i] * w[i] + b[i]; one task per row
int64_t affine(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  const float *x = relocated(operands[0]), *w = operands[1], *b = operands[2];
  float *y = operands[3];
  int64_t n = sizes[0];
  for (int64_t r = lo; r < hi; ++r)
    for (int64_t i = 0; i < n; ++i)
      y[r * n + i] = x[r * n + i] * w[i] + b[i];
  return INT64_MAX;
}

// y = exp(x); one task per element
int64_t exponential(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  const float *x = operands[0];
  float *y = operands[1];
  for (int64_t i = lo; i < hi; ++i)
    y[i] = expf(x[i]);
  return INT64_MAX;
}

// y[r] = x[r] reversed, through scratch memory of n floats; one task per row
int64_t reversed(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  const float *x = operands[0];
  float *y = operands[1], *row = scratch;
  int64_t n = sizes[0];
  for (int64_t r = lo; r < hi; ++r) {
    for (int64_t i = 0; i < n; ++i)
      row[i] = x[r * n + n - 1 - i];
    for (int64_t i = 0; i < n; ++i)
      y[r * n + i] = row[i];
  }
  return INT64_MAX;
}

// Selects the positive elements of x[n], and counts them
int64_t positive(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  const float *x = operands[0];
  float *y = operands[1];
  int64_t *count = operands[2];
  *count = 0;
  for (int64_t i = 0; i < sizes[0]; ++i)
    if (x[i] > 0)
      y[(*count)++] = x[i];
  return INT64_MAX;
}

// x[0] < limit[0], as a bool
int64_t below(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  const float *x = operands[0], *limit = operands[1];
  *(uint8_t *)operands[2] = x[0] < limit[0];
  return INT64_MAX;
}

// y = x; the first negative element is an error
int64_t positiveOnly(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  const float *x = operands[0];
  float *y = operands[1];
  for (int64_t i = lo; i < hi; ++i) {
    if (x[i] < 0)
      return i;
    y[i] = x[i];
  }
  return INT64_MAX;
}

// An empty kernel, to measure the overhead of a step
int64_t nothing(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) {
  return INT64_MAX;
}
