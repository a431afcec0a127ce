// cuBLASLt on the CUDA driver for tests, whose memory is memory of the process. It refuses what the real one refuses,
// and fails on request: see FakeCublasLt.h. A product is two pieces of work, which pass a number through its workspace:
// a product that has the same workspace at the same time changes it.
#include "test/gpu/driver/FakeCublasLt.h"
#include "test/gpu/bundle/Numbers.h"
#include "test/gpu/driver/FakeCuda.h"
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

using burin::DType;

namespace {

constexpr int kInvalid = 7, kUnsupported = 15;
constexpr uint64_t kMark = 0xB1A5, kMostAlignment = 256;
constexpr size_t kWorkspace = 4096; // that every product asks for

struct Layout {
  DType dtype;
  uint64_t rows, columns;
  int64_t stride;
  int32_t batches = 1;
  int64_t batchStride = 0;

  size_t bytes() const {
    const uint64_t last = uint64_t(batches - 1) * uint64_t(batchStride) + (columns - 1) * uint64_t(stride) + rows;
    return last * burin::byteWidth(dtype);
  }
};
struct Preference {
  uint64_t workspaceBytes = 0;
  uint32_t reductions = 7;
  std::array<uint32_t, 4> alignments{kMostAlignment, kMostAlignment, kMostAlignment, kMostAlignment};
};
struct Algorithm {
  uint64_t opaque[8];
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};
struct Description {
  int epilogue = 1;
  const void *bias = nullptr;
};
struct Library {};

struct State {
  std::mutex mutex;
  int64_t objects = 0, products = 0;
  std::string failing, wrong;
  int failResult = 0;

  State() {
    const char *text = getenv("FAKE_CUBLASLT_FAIL");
    const std::string_view fail = text ? text : "";
    if (const size_t colon = fail.find(':'); colon != fail.npos) {
      failing = fail.substr(0, colon);
      failResult = int(strtol(text + colon + 1, nullptr, 10));
    }
  }
  int planted(std::string_view function) {
    std::lock_guard lock(mutex);
    return function == failing ? failResult : 0;
  }
  int complain(const char *what, int result) {
    std::lock_guard lock(mutex);
    wrong += std::string(what) + "\n";
    return result;
  }
};
State state;

template <class T, class... Values> int make(void **out, Values... values) {
  std::lock_guard lock(state.mutex);
  ++state.objects;
  *out = new T{values...};
  return 0;
}
template <class T> int destroy(void *object) {
  std::lock_guard lock(state.mutex);
  --state.objects;
  delete static_cast<T *>(object);
  return 0;
}
template <class T> int assign(T &to, const void *value, size_t bytes) {
  if (bytes != sizeof to)
    return kInvalid;
  std::memcpy(reinterpret_cast<std::byte *>(&to), value, bytes);
  return 0;
}

/// An operand of a product.
struct Matrix {
  const void *data;
  Layout layout;

  uint64_t rows() const { return layout.rows; }
  uint64_t columns() const { return layout.columns; }
  double at(int64_t batch, uint64_t row, uint64_t column) const {
    return burin::test::bundle::real(layout.dtype, static_cast<const std::byte *>(data),
                                     uint64_t(batch * layout.batchStride) + column * uint64_t(layout.stride) + row);
  }
};

void store(void *data, const Layout &layout, int64_t batch, uint64_t row, uint64_t column, float value) {
  const uint64_t i = uint64_t(batch * layout.batchStride) + column * uint64_t(layout.stride) + row;
  if (layout.dtype == DType::f32)
    static_cast<float *>(data)[i] = value;
  else
    static_cast<uint16_t *>(data)[i] = burin::toNarrowFloat(layout.dtype, value);
}

void multiply(const Matrix &a, const Matrix &b, void *d, const Layout &result, const void *bias) {
  for (int64_t batch = 0; batch < result.batches; ++batch)
    for (uint64_t column = 0; column < result.columns; ++column)
      for (uint64_t row = 0; row < result.rows; ++row) {
        double sum = 0;
        for (uint64_t k = 0; k < a.columns(); ++k)
          sum += a.at(batch, row, k) * b.at(batch, k, column);
        auto value = float(sum);
        if (bias)
          value += float(burin::test::bundle::real(result.dtype, static_cast<const std::byte *>(bias), row));
        store(d, result, batch, row, column, value);
      }
}

bool isAligned(const void *data, uint64_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; }

} // namespace

#define PLANTED                                                                                                        \
  if (const int planted = state.planted(__func__))                                                                     \
  return planted

extern "C" {

int cublasLtCreate(void **out) {
  PLANTED;
  return make<Library>(out);
}
int cublasLtDestroy(void *library) { return destroy<Library>(library); }
int cublasLtMatmulDescCreate(void **out, int computeType, int scaleType) {
  PLANTED;
  constexpr int kSumsInFloat = 68;
  return computeType != kSumsInFloat || scaleType ? kInvalid : make<Description>(out);
}
int cublasLtMatmulDescSetAttribute(void *product, int attribute, const void *value, size_t bytes) {
  PLANTED;
  auto &description = *static_cast<Description *>(product);
  switch (attribute) {
  case 7:
    return assign(description.epilogue, value, bytes);
  case 8:
    return assign(description.bias, value, bytes);
  default:
    return kInvalid;
  }
}
int cublasLtMatmulDescDestroy(void *product) { return destroy<Description>(product); }
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  PLANTED;
  if (type != 0 && type != 2 && type != 14)
    return kInvalid;
  return make<Layout>(out, type == 0 ? DType::f32 : type == 2 ? DType::f16 : DType::bf16, rows, columns, stride);
}
int cublasLtMatrixLayoutSetAttribute(void *of, int attribute, const void *value, size_t bytes) {
  PLANTED;
  auto &layout = *static_cast<Layout *>(of);
  return attribute == 5   ? assign(layout.batches, value, bytes)
         : attribute == 6 ? assign(layout.batchStride, value, bytes)
                          : kInvalid;
}
int cublasLtMatrixLayoutDestroy(void *layout) { return destroy<Layout>(layout); }
int cublasLtMatmulPreferenceCreate(void **out) {
  PLANTED;
  return make<Preference>(out);
}
int cublasLtMatmulPreferenceDestroy(void *preference) { return destroy<Preference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void *of, int attribute, const void *value, size_t bytes) {
  PLANTED;
  auto &preference = *static_cast<Preference *>(of);
  if (attribute >= 5 && attribute <= 8)
    return assign(preference.alignments[size_t(attribute - 5)], value, bytes);
  return attribute == 1   ? assign(preference.workspaceBytes, value, bytes)
         : attribute == 3 ? assign(preference.reductions, value, bytes)
                          : kInvalid;
}
int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *a, void *b, void *c, void *d, void *preferred, int count,
                                   Algorithm *algorithms, int *found) {
  PLANTED;
  const auto &preference = *static_cast<Preference *>(preferred);
  const auto &result = *static_cast<Layout *>(d);
  const Matrix left{nullptr, *static_cast<Layout *>(a)}, right{nullptr, *static_cast<Layout *>(b)};
  auto isPossible = [&](const Layout &layout) {
    return layout.rows && layout.columns && layout.stride >= int64_t(layout.rows) && layout.batches == result.batches;
  };
  if (count < 1 || c != d || left.columns() != right.rows() || result.rows != left.rows() ||
      result.columns != right.columns() || !isPossible(left.layout) || !isPossible(right.layout) || !isPossible(result))
    return kInvalid;
  *found = preference.workspaceBytes >= kWorkspace && preference.reductions == 2;
  *algorithms = {};
  algorithms->opaque[0] = kMark;
  for (size_t i = 0; i < 4; ++i)
    algorithms->opaque[1 + i] = preference.alignments[i];
  algorithms->opaque[5] = result.rows * 1'000'003 + result.columns * 1009 + left.columns();
  algorithms->workspaceBytes = kWorkspace;
  algorithms->state = *found ? 0 : kUnsupported;
  return 0;
}
int cublasLtMatmul(void *, void *product, const void *alpha, const void *a, void *aLayout, const void *b, void *bLayout,
                   const void *beta, const void *, void *, void *d, void *dLayout, const Algorithm *algorithm,
                   void *workspace, size_t workspaceBytes, void *stream) {
  PLANTED;
  namespace fake = burin::test::fake;
  const auto description = *static_cast<Description *>(product);
  const auto result = *static_cast<Layout *>(dLayout);
  const Matrix left{a, *static_cast<Layout *>(aLayout)}, right{b, *static_cast<Layout *>(bLayout)};
  const uint64_t *opaque = algorithm->opaque;
  if (opaque[0] != kMark || opaque[5] != result.rows * 1'000'003 + result.columns * 1009 + left.columns())
    return state.complain("an algorithm of another product", kInvalid);
  if (!isAligned(a, opaque[1]) || !isAligned(b, opaque[2]) || !isAligned(d, opaque[3]) || !isAligned(d, opaque[4]))
    return state.complain("an operand is not aligned as the algorithm needs it", kInvalid);
  if (!workspace || workspaceBytes < kWorkspace || !isAligned(workspace, 16) ||
      !fake::isOnDevice(workspace, workspaceBytes))
    return state.complain("no workspace", kInvalid);
  if (!fake::isOnDevice(a, left.layout.bytes()) || !fake::isOnDevice(b, right.layout.bytes()) ||
      !fake::isOnDevice(d, result.bytes()))
    return state.complain("an operand is not in memory of the device", kInvalid);
  const void *bias = description.epilogue == 4 ? description.bias : nullptr;
  if (*static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0 ||
      (description.epilogue != 1 && !bias))
    return kUnsupported;
  static std::atomic<uint64_t> tickets = 0;
  const uint64_t ticket = ++tickets;
  auto begin = [=] {
    std::memcpy(workspace, &ticket, sizeof ticket);
    return 0;
  };
  auto end = [=] {
    multiply(left, right, d, result, bias);
    std::lock_guard lock(state.mutex);
    ++state.products;
    if (std::memcmp(workspace, &ticket, sizeof ticket) != 0)
      state.wrong += "two products have one workspace at the same time\n";
    return 0;
  };
  constexpr int kFailed = 13;
  return fake::enqueueWork(stream, begin) || fake::enqueueWork(stream, end) ? kFailed : 0;
}

} // extern "C"

namespace burin::test::fake {

int64_t products() {
  std::lock_guard lock(state.mutex);
  return state.products;
}

void failLibrary(const std::string &function, int result) {
  std::lock_guard lock(state.mutex);
  state.failing = function;
  state.failResult = result;
}

std::string libraryProblems() {
  std::lock_guard lock(state.mutex);
  std::string text = std::exchange(state.wrong, "");
  if (state.objects)
    text += std::to_string(state.objects) + " objects left\n";
  return text;
}

} // namespace burin::test::fake
