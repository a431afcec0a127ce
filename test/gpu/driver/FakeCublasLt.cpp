// cuBLASLt on the CUDA driver for tests, whose memory is memory of the process: products are plain loops over columns
// after columns, when the work before them is complete.
#include "test/gpu/bundle/Numbers.h"
#include <algorithm>

extern "C" int cuStreamSynchronize(void *stream);

namespace {

struct Layout {
  burin::DType dtype;
  uint64_t rows, columns;
  int64_t stride;
};
struct Preference {
  uint64_t workspaceBytes = 0;
};
struct Algorithm {
  uint64_t opaque[8];
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};
struct Product {};

constexpr int kInvalid = 7, kUnsupported = 15;
constexpr uint64_t kMark = 0xB1A5;
constexpr size_t kWorkspace = 4096; // that every product asks for

double at(const void *data, const Layout &layout, uint64_t row, uint64_t column) {
  return burin::test::bundle::real(layout.dtype, static_cast<const std::byte *>(data), column * layout.stride + row);
}
void store(void *data, const Layout &layout, uint64_t row, uint64_t column, float value) {
  const uint64_t i = column * uint64_t(layout.stride) + row;
  if (layout.dtype == burin::DType::f32)
    static_cast<float *>(data)[i] = value;
  else
    static_cast<uint16_t *>(data)[i] = burin::toNarrowFloat(layout.dtype, value);
}

} // namespace

extern "C" {

int cublasLtCreate(void **out) {
  *out = new Product;
  return 0;
}
int cublasLtDestroy(void *library) {
  delete static_cast<Product *>(library);
  return 0;
}
int cublasLtMatmulDescCreate(void **out, int computeType, int scaleType) {
  if (computeType != 68 || scaleType)
    return kInvalid;
  *out = new Product;
  return 0;
}
int cublasLtMatmulDescDestroy(void *product) {
  delete static_cast<Product *>(product);
  return 0;
}
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  if ((type != 0 && type != 2 && type != 14) || stride < int64_t(rows))
    return kInvalid;
  const burin::DType dtype = type == 0 ? burin::DType::f32 : type == 2 ? burin::DType::f16 : burin::DType::bf16;
  *out = new Layout{dtype, rows, columns, stride};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void *layout) {
  delete static_cast<Layout *>(layout);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void **out) {
  *out = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void *preference) {
  delete static_cast<Preference *>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes) {
  if (attribute != 1 || bytes != sizeof(uint64_t))
    return kInvalid;
  std::memcpy(&static_cast<Preference *>(preference)->workspaceBytes, value, bytes);
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *a, void *b, void *c, void *d, void *preference, int count,
                                   Algorithm *algorithms, int *found) {
  const auto &left = *static_cast<Layout *>(a), &right = *static_cast<Layout *>(b), &result = *static_cast<Layout *>(d);
  if (count < 1 || c != d || left.columns != right.rows || result.rows != left.rows || result.columns != right.columns)
    return kInvalid;
  *found = static_cast<Preference *>(preference)->workspaceBytes >= kWorkspace;
  *algorithms = {};
  algorithms->opaque[0] = kMark;
  algorithms->workspaceBytes = kWorkspace;
  algorithms->state = *found ? 0 : kUnsupported;
  return 0;
}
int cublasLtMatmul(void *, void *, const void *alpha, const void *a, void *aLayout, const void *b, void *bLayout,
                   const void *beta, const void *, void *, void *d, void *dLayout, const Algorithm *algorithm,
                   void *workspace, size_t workspaceBytes, void *stream) {
  if (algorithm->opaque[0] != kMark || !workspace || workspaceBytes < kWorkspace)
    return kInvalid;
  if (int failed = cuStreamSynchronize(stream))
    return failed;
  const auto &left = *static_cast<Layout *>(aLayout), &right = *static_cast<Layout *>(bLayout),
             &result = *static_cast<Layout *>(dLayout);
  if (*static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0)
    return kUnsupported;
  for (uint64_t column = 0; column < result.columns; ++column)
    for (uint64_t row = 0; row < result.rows; ++row) {
      double sum = 0;
      for (uint64_t k = 0; k < left.columns; ++k)
        sum += at(a, left, row, k) * at(b, right, k, column);
      store(d, result, row, column, float(sum));
    }
  return 0;
}

} // extern "C"
