#include "runtime/gpu/libraries/CublasLt.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace burin::rt::gpu {

namespace {

// The library's ABI, as in the documentation of cuBLAS 12 and 13.
using Code = int; // cublasStatus_t; 0: success
using Handle = void *;
constexpr int kSumsInFloat = 68;                                    // CUBLAS_COMPUTE_32F
constexpr int kEpilogue = 7, kBiasPointer = 8, kAddsBias = 4;       // CUBLASLT_MATMUL_DESC_…, CUBLASLT_EPILOGUE_BIAS
constexpr int kBatches = 5, kBatchStride = 6;                       // CUBLASLT_MATRIX_LAYOUT_…
constexpr int kMostWorkspace = 1, kReductions = 3, kAlignments = 5; // CUBLASLT_MATMUL_PREF_…; of four matrices
// Parts of a sum are added in f32 (CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE), not in the type of the result.
constexpr uint32_t kReducedInFloat = 2;

int typeOf(DType dtype) { // cudaDataType
  return dtype == DType::f32 ? 0 : dtype == DType::f16 ? 2 : 14;
}

/// Of an address, in bytes; more than 256 makes no difference.
uint32_t alignmentOf(const void *data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return uint32_t(address & -address);
}

using Alignments = std::array<uint32_t, 5>; // of the library's matrices, of which two are the result; of the bias

struct Algorithm { // cublasLtMatmulHeuristicResult_t
  uint64_t opaque[8];
  size_t workspaceBytes;
  Code state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 96);

// clang-format off
/// All functions in use: name here, symbol, parameters.
#define BURIN_CUBLASLT_FUNCTIONS(F)                                                                                    \
  F(create, "cublasLtCreate", (Handle *))                                                                              \
  F(destroy, "cublasLtDestroy", (Handle))                                                                              \
  F(matmulDescCreate, "cublasLtMatmulDescCreate", (Handle *, int computeType, int scaleType))                          \
  F(matmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", (Handle, int attribute, const void *, size_t bytes))     \
  F(matmulDescDestroy, "cublasLtMatmulDescDestroy", (Handle))                                                          \
  F(matrixLayoutCreate, "cublasLtMatrixLayoutCreate",                                                                  \
    (Handle *, int type, uint64_t rows, uint64_t columns, int64_t stride))                                             \
  F(matrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute", (Handle, int attribute, const void *, size_t bytes)) \
  F(matrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", (Handle))                                                      \
  F(matmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", (Handle *))                                              \
  F(matmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",                                              \
    (Handle, int attribute, const void *, size_t bytes))                                                               \
  F(matmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", (Handle))                                              \
  F(matmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                                                          \
    (Handle, Handle desc, Handle a, Handle b, Handle c, Handle d, Handle preference, int count, Algorithm *,           \
     int *found))                                                                                                      \
  F(matmul, "cublasLtMatmul",                                                                                          \
    (Handle, Handle desc, const void *alpha, const void *a, Handle aLayout, const void *b, Handle bLayout,             \
     const void *beta, const void *c, Handle cLayout, void *d, Handle dLayout, const Algorithm *, void *workspace,     \
     size_t workspaceBytes, Stream))
// clang-format on

} // namespace

struct CublasLt::Library {
#define BURIN_CUBLASLT_FUNCTION(name, symbol, parameters) Code(*name) parameters = nullptr;
  BURIN_CUBLASLT_FUNCTIONS(BURIN_CUBLASLT_FUNCTION)
#undef BURIN_CUBLASLT_FUNCTION
  Handle handle = nullptr;

  /// Returns why it cannot be used; "": it can.
  std::string open();
};

std::string CublasLt::Library::open() {
  const char *path = std::getenv("BURIN_CUBLASLT");
  const bool isNamed = path && *path;
  if (isNamed && std::strcmp(path, "0") == 0)
    return "BURIN_CUBLASLT is 0";
  void *file = nullptr;
  for (const char *name : {"libcublasLt.so.13", "libcublasLt.so.12"})
    if (!file)
      file = dlopen(isNamed ? path : name, RTLD_NOW | RTLD_LOCAL);
  if (!file)
    return dlerror();
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, symbol));
    if (!function)
      missing = symbol;
  };
#define BURIN_CUBLASLT_FUNCTION(name, symbol, parameters) find(name, symbol);
  BURIN_CUBLASLT_FUNCTIONS(BURIN_CUBLASLT_FUNCTION)
#undef BURIN_CUBLASLT_FUNCTION
  if (missing)
    return text("it has no ", missing);
  const Code code = create(&handle);
  return code ? text("cublasLtCreate returned ", code) : "";
}

/// A way to compute a product, or the reason why there is none. The library's matrices are columns after columns, so it
/// computes the transposed product of the transposed matrices: its first operand is the right one.
struct CublasLt::Choice {
  Choice(const Library &lt, const MatrixProduct &product, const Alignments &alignments)
      : lt(lt), product(product), alignments(alignments) {}
  ~Choice();
  Choice(const Choice &) = delete;
  void make(const void *bias);
  bool isUsable() const { return !failed; }

  const Library &lt;
  const MatrixProduct product;
  const Alignments alignments;
  Handle description = nullptr, first = nullptr, second = nullptr, result = nullptr;
  Algorithm algorithm = {};
  const char *failed = nullptr; // the function that has failed, and its result
  Code code = 0;

private:
  void layOut(Handle &layout, DType type, int64_t rows, int64_t columns, int64_t stride, int64_t batchStride);
  void search();
  template <class... Parameters, class... Arguments>
  void call(const char *name, Code (*function)(Parameters...), Arguments... arguments) {
    if (failed)
      return;
    code = function(arguments...);
    failed = code ? name : nullptr;
  }
};

CublasLt::Choice::~Choice() {
  for (Handle layout : {first, second, result})
    if (layout)
      lt.matrixLayoutDestroy(layout);
  if (description)
    lt.matmulDescDestroy(description);
}

void CublasLt::Choice::layOut(Handle &layout, DType type, int64_t rows, int64_t columns, int64_t stride,
                              int64_t batchStride) {
  // The stride of a single column may be anything.
  call("MatrixLayoutCreate", lt.matrixLayoutCreate, &layout, typeOf(type), uint64_t(rows), uint64_t(columns),
       columns == 1 ? rows : stride);
  const auto batches = int32_t(product.batches);
  if (product.batches == 1)
    return;
  call("MatrixLayoutSetAttribute", lt.matrixLayoutSetAttribute, layout, kBatches, &batches, sizeof batches);
  call("MatrixLayoutSetAttribute", lt.matrixLayoutSetAttribute, layout, kBatchStride, &batchStride, sizeof batchStride);
}

void CublasLt::Choice::make(const void *bias) {
  const auto &[type, resultType, hasBias, m, n, k, batches, leftStride, leftBatchStride] = product;
  call("MatmulDescCreate", lt.matmulDescCreate, &description, kSumsInFloat, typeOf(DType::f32));
  auto describe = [&](int attribute, const auto &value) {
    call("MatmulDescSetAttribute", lt.matmulDescSetAttribute, description, attribute, static_cast<const void *>(&value),
         sizeof value);
  };
  if (hasBias) {
    describe(kEpilogue, kAddsBias);
    describe(kBiasPointer, bias);
  }
  layOut(first, type, n, k, n, k * n);
  layOut(second, type, k, m, leftStride, leftBatchStride);
  layOut(result, resultType, n, m, n, m * n);
  search();
}

void CublasLt::Choice::search() {
  Handle preference = nullptr;
  call("MatmulPreferenceCreate", lt.matmulPreferenceCreate, &preference);
  auto prefer = [&](int attribute, const auto &value) {
    call("MatmulPreferenceSetAttribute", lt.matmulPreferenceSetAttribute, preference, attribute, &value, sizeof value);
  };
  prefer(kMostWorkspace, kWorkspaceBytes);
  prefer(kReductions, kReducedInFloat);
  for (int i = 0; i < 4; ++i)
    prefer(kAlignments + i, alignments[size_t(i)]);
  int found = 0;
  call("MatmulAlgoGetHeuristic", lt.matmulAlgoGetHeuristic, lt.handle, description, first, second, result, result,
       preference, 1, &algorithm, &found);
  if (!failed && (!found || algorithm.state)) {
    failed = "MatmulAlgoGetHeuristic";
    code = algorithm.state;
  }
  if (preference)
    lt.matmulPreferenceDestroy(preference);
}

CublasLt::CublasLt() : library(std::make_unique<Library>()) {}

CublasLt::~CublasLt() {
  choices.clear();
  if (library->handle)
    library->destroy(library->handle);
}

Status CublasLt::open(std::unique_ptr<CublasLt> &out) {
  std::unique_ptr<CublasLt> opened(new CublasLt);
  if (std::string problem = opened->library->open(); !problem.empty())
    return {ErrorCode::Unsupported, std::move(problem)};
  out = std::move(opened);
  return {};
}

bool CublasLt::choose(const MatrixProduct &product, const Operands &operands, std::string &problem) {
  constexpr size_t kMost = 512;
  const uint32_t ofResult = alignmentOf(operands.result);
  const Alignments alignments{alignmentOf(operands.right), alignmentOf(operands.left), ofResult, ofResult,
                              alignmentOf(operands.bias)};
  auto known = std::ranges::find_if(choices, [&](const std::unique_ptr<Choice> &choice) {
    return choice->product == product && choice->alignments == alignments;
  });
  if (known == choices.end()) {
    if (choices.size() == kMost)
      choices.clear();
    current = choices.emplace_back(std::make_unique<Choice>(*library, product, alignments)).get();
    current->make(operands.bias);
    if (!current->isUsable())
      problem = text("cublasLt", current->failed, " returned ", current->code);
  } else {
    current = known->get();
  }
  return current->isUsable();
}

Status CublasLt::enqueue(const Operands &operands, void *workspace, Stream stream) {
  const float one = 1, zero = 0;
  const Choice &c = *current;
  Code code = 0;
  if (operands.bias)
    code = library->matmulDescSetAttribute(c.description, kBiasPointer, static_cast<const void *>(&operands.bias),
                                           sizeof operands.bias);
  if (!code)
    code = library->matmul(library->handle, c.description, &one, operands.right, c.first, operands.left, c.second,
                           &zero, operands.result, c.result, operands.result, c.result, &c.algorithm, workspace,
                           kWorkspaceBytes, stream);
  return code ? Status(ErrorCode::Internal, text("cublasLtMatmul returned ", code)) : Status();
}

} // namespace burin::rt::gpu
