#include "test/gpu/bundle/CublasLt.h"
#include <dlfcn.h>
#include <string>

namespace burin::test::bundle {

namespace {

// The library's ABI, as in the documentation of cuBLAS 12 and 13.
using Code = int; // cublasStatus_t; 0: success
using Handle = void *;
constexpr int kSumsInFloat = 68;  // CUBLAS_COMPUTE_32F
constexpr int kMostWorkspace = 1; // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr size_t kWorkspaceBytes = 64 << 20;

struct Algorithm { // cublasLtMatmulHeuristicResult_t
  uint64_t opaque[8];
  size_t workspaceBytes;
  Code state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 96);

int typeOf(DType dtype) { // cudaDataType
  return dtype == DType::f32 ? 0 : dtype == DType::f16 ? 2 : 14;
}

rt::Status status(Code code, const char *function) {
  if (!code)
    return {};
  return {rt::ErrorCode::Internal, std::string(function) + " returned " + std::to_string(code)};
}

} // namespace

// clang-format off
#define BURIN_CUBLASLT_FUNCTIONS(F)                                                                                    \
  F(Create, (Handle *))                                                                                                \
  F(Destroy, (Handle))                                                                                                 \
  F(MatmulDescCreate, (Handle *, int computeType, int scaleType))                                                      \
  F(MatmulDescDestroy, (Handle))                                                                                       \
  F(MatrixLayoutCreate, (Handle *, int type, uint64_t rows, uint64_t columns, int64_t stride))                         \
  F(MatrixLayoutDestroy, (Handle))                                                                                     \
  F(MatmulPreferenceCreate, (Handle *))                                                                                \
  F(MatmulPreferenceDestroy, (Handle))                                                                                 \
  F(MatmulPreferenceSetAttribute, (Handle, int attribute, const void *value, size_t bytes))                            \
  F(MatmulAlgoGetHeuristic, (Handle, Handle desc, Handle a, Handle b, Handle c, Handle d, Handle preference, int count,\
                             Algorithm *, int *found))                                                                 \
  F(Matmul, (Handle, Handle desc, const void *alpha, const void *a, Handle aLayout, const void *b, Handle bLayout,     \
             const void *beta, const void *c, Handle cLayout, void *d, Handle dLayout, const Algorithm *,              \
             void *workspace, size_t workspaceBytes, rt::gpu::Stream))
// clang-format on

struct CublasLtProduct::Library {
#define BURIN_CUBLASLT_FUNCTION(name, parameters) Code(*name) parameters = nullptr;
  BURIN_CUBLASLT_FUNCTIONS(BURIN_CUBLASLT_FUNCTION)
#undef BURIN_CUBLASLT_FUNCTION
  bool isOpen = false;

  Library() {
    void *file = nullptr;
    for (const char *name : {"libcublasLt.so.13", "libcublasLt.so.12"})
      if (!file)
        file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    isOpen = file;
#define BURIN_CUBLASLT_FUNCTION(name, parameters)                                                                      \
  if (isOpen) {                                                                                                        \
    name = reinterpret_cast<Code(*) parameters>(dlsym(file, "cublasLt" #name));                                        \
    isOpen = name;                                                                                                     \
  }
    BURIN_CUBLASLT_FUNCTIONS(BURIN_CUBLASLT_FUNCTION)
#undef BURIN_CUBLASLT_FUNCTION
  }
};

struct CublasLtProduct::Handles {
  Handle library = nullptr, product = nullptr, left = nullptr, right = nullptr, result = nullptr, preference = nullptr;
  Algorithm algorithm = {};
  rt::BufferRef workspace;
};

const CublasLtProduct::Library *CublasLtProduct::library() {
  static const Library library;
  return library.isOpen ? &library : nullptr;
}

rt::Status CublasLtProduct::create(rt::gpu::Device &device, int64_t m, int64_t k, int64_t n, DType dtype,
                                   std::unique_ptr<CublasLtProduct> &out) {
  out.reset();
  const Library *lt = library();
  if (!lt)
    return {};
  std::unique_ptr<CublasLtProduct> product(new CublasLtProduct);
  product->handles = std::make_unique<Handles>();
  Handles &h = *product->handles;
  const int type = typeOf(dtype);
  // The library's matrices are columns after columns, so it computes the transposed product of the transposed matrices.
  rt::Status made;
  auto step = [&](const char *function, auto call, auto... arguments) {
    if (made.ok())
      made = status(call(arguments...), function);
  };
  step("cublasLtCreate", lt->Create, &h.library);
  step("cublasLtMatmulDescCreate", lt->MatmulDescCreate, &h.product, kSumsInFloat, typeOf(DType::f32));
  step("cublasLtMatrixLayoutCreate", lt->MatrixLayoutCreate, &h.left, type, uint64_t(n), uint64_t(k), n);
  step("cublasLtMatrixLayoutCreate", lt->MatrixLayoutCreate, &h.right, type, uint64_t(k), uint64_t(m), k);
  step("cublasLtMatrixLayoutCreate", lt->MatrixLayoutCreate, &h.result, type, uint64_t(n), uint64_t(m), n);
  step("cublasLtMatmulPreferenceCreate", lt->MatmulPreferenceCreate, &h.preference);
  if (made.ok())
    made = status(lt->MatmulPreferenceSetAttribute(h.preference, kMostWorkspace, &kWorkspaceBytes, sizeof(size_t)),
                  "cublasLtMatmulPreferenceSetAttribute");
  if (!made.ok())
    return made;
  int found = 0;
  Code code = lt->MatmulAlgoGetHeuristic(h.library, h.product, h.left, h.right, h.result, h.result, h.preference, 1,
                                         &h.algorithm, &found);
  if (code || !found || h.algorithm.state)
    return {};
  made = device.allocateBuffer(kWorkspaceBytes, h.workspace);
  if (made.ok())
    out = std::move(product);
  return made;
}

CublasLtProduct::~CublasLtProduct() {
  const Library &lt = *library();
  if (handles->preference)
    lt.MatmulPreferenceDestroy(handles->preference);
  for (Handle layout : {handles->left, handles->right, handles->result})
    if (layout)
      lt.MatrixLayoutDestroy(layout);
  if (handles->product)
    lt.MatmulDescDestroy(handles->product);
  if (handles->library)
    lt.Destroy(handles->library);
}

rt::Status CublasLtProduct::run(const void *left, const void *right, void *result, rt::gpu::Stream stream) {
  const float one = 1, zero = 0;
  const Handles &h = *handles;
  Code code = library()->Matmul(h.library, h.product, &one, right, h.left, left, h.right, &zero, result, h.result,
                                result, h.result, &h.algorithm, h.workspace->data(), kWorkspaceBytes, stream);
  return status(code, "cublasLtMatmul");
}

} // namespace burin::test::bundle
