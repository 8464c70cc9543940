#include "core/cuda/cublas_lt.h"

#include <cublasLt.h>

#include <source_location>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/cuda/cublas.h"
#include "core/os/dynamic_library.h"

namespace gauntlet {
namespace {

/// Functions as the header declares them, found in the library at run time.
struct LtFunctions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

template <class F>
bool find_lt(const DynamicLibrary& library, const char* name, F*& function, Error& missing) {
  const auto found = library.symbol<F>(name);
  if (found) {
    function = *found;
  } else {
    missing = found.error();
  }
  return static_cast<bool>(found);
}

Expected<LtFunctions> lt_functions_of(const DynamicLibrary& library) {
  LtFunctions f;
  Error missing;
  const bool complete =
      find_lt(library, "cublasLtCreate", f.create, missing) &&
      find_lt(library, "cublasLtDestroy", f.destroy, missing) &&
      find_lt(library, "cublasLtGetStatusName", f.status_name, missing) &&
      find_lt(library, "cublasLtMatmulDescCreate", f.desc_create, missing) &&
      find_lt(library, "cublasLtMatmulDescDestroy", f.desc_destroy, missing) &&
      find_lt(library, "cublasLtMatmulDescSetAttribute", f.desc_set, missing) &&
      find_lt(library, "cublasLtMatrixLayoutCreate", f.layout_create, missing) &&
      find_lt(library, "cublasLtMatrixLayoutDestroy", f.layout_destroy, missing) &&
      find_lt(library, "cublasLtMatmulPreferenceCreate", f.preference_create, missing) &&
      find_lt(library, "cublasLtMatmulPreferenceDestroy", f.preference_destroy, missing) &&
      find_lt(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic, missing) &&
      find_lt(library, "cublasLtMatmul", f.matmul, missing);
  if (!complete) return missing;
  return f;
}

}  // namespace

struct CublasLtLayer::State {
  LtFunctions call;
  LinearLayer layer;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  ~State() {
    if (y != nullptr) call.layout_destroy(y);
    if (x != nullptr) call.layout_destroy(x);
    if (w != nullptr) call.layout_destroy(w);
    if (product != nullptr) call.desc_destroy(product);
    if (handle != nullptr) call.destroy(handle);
  }

  template <class Value>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, Value value) const {
    return call.desc_set(product, attribute, &value, sizeof(value));
  }

  /// As column-major cuBLASLt sees it: yᵀ [n, m] = w · xᵀ, and a bias per row of yᵀ.
  cublasStatus_t describe() {
    const auto rows = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
    const bool ends = layer.epilogue == Epilogue::bias_relu;
    cublasStatus_t status = call.desc_create(&product, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
    const auto then = [&](auto&& next) {
      if (status == CUBLAS_STATUS_SUCCESS) status = next();
    };
    then([&] { return set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T); });
    then([&] { return set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N); });
    if (ends) {
      then([&] { return set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS); });
      then([&] { return set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, layer.bias); });
    }
    then([&] { return call.layout_create(&w, CUDA_R_32F, rows(layer.k), rows(layer.n), layer.k); });
    then([&] { return call.layout_create(&x, CUDA_R_32F, rows(layer.k), rows(layer.m), layer.k); });
    then([&] { return call.layout_create(&y, CUDA_R_32F, rows(layer.n), rows(layer.m), layer.n); });
    return status;
  }

  /// A preference starts with a workspace of no bytes.
  cublasStatus_t choose(int& found) {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasStatus_t status = call.preference_create(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    cublasLtMatmulHeuristicResult_t result{};
    status = call.heuristic(handle, product, w, x, y, y, preference, 1, &result, &found);
    call.preference_destroy(preference);
    algorithm = result.algo;
    return status;
  }
};

CublasLtLayer::CublasLtLayer() : state_(std::make_unique<State>()) {}
CublasLtLayer::~CublasLtLayer() = default;

Expected<std::unique_ptr<CublasLtLayer>> CublasLtLayer::open(const LinearLayer& layer) {
  LibrarySearch search = cublas_search();
  search.names = {"libcublasLt.so.13"};
  const auto library = DynamicLibrary::open(search);
  if (!library) return library.error();
  const auto functions = lt_functions_of(*library);
  if (!functions) return functions.error();
  // Its code may still be needed by a context that is torn down at exit.
  library->keep_loaded();

  std::unique_ptr<CublasLtLayer> made(new CublasLtLayer());
  State& state = *made->state_;
  state.call = *functions;
  state.layer = layer;
  cublasStatus_t status = state.call.create(&state.handle);
  if (status == CUBLAS_STATUS_SUCCESS) status = state.describe();
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) status = state.choose(found);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return Error{std::string("cuBLASLt could not prepare a layer: ") +
                 state.call.status_name(status)};
  }
  if (found == 0) return Error{"cuBLASLt knows no algorithm for this layer without a workspace"};
  return made;
}

void CublasLtLayer::run(CUstream_st* stream) {
  const State& s = *state_;
  const float one = 1, zero = 0;
  const auto status =
      s.call.matmul(s.handle, s.product, &one, s.layer.w, s.w, s.layer.x, s.x, &zero, s.layer.y,
                    s.y, s.layer.y, s.y, &s.algorithm, nullptr, 0, stream);
  if (status != CUBLAS_STATUS_SUCCESS) fail(s.call.status_name(status));
}

std::shared_ptr<CublasLtLayer> require_cublas_lt(const LinearLayer& layer) {
  auto opened = CublasLtLayer::open(layer);
  if (!opened) fail(opened.error().message);
  return std::move(*opened);
}

}  // namespace gauntlet
