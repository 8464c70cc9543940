#include "core/cuda/cublas_lt.h"

#include <cublasLt.h>

#include <source_location>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/cuda/cublas.h"
#include "core/cuda/memory.h"
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
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
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
      find_lt(library, "cublasLtMatmulPreferenceSetAttribute", f.preference_set, missing) &&
      find_lt(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic, missing) &&
      find_lt(library, "cublasLtMatmul", f.matmul, missing);
  if (!complete) return missing;
  return f;
}

}  // namespace

struct CublasLtLayer::State {
  LtFunctions call;
  const void* w_data = nullptr;
  const void* x_data = nullptr;
  void* y_data = nullptr;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  DeviceMemory workspace;

  ~State() {
    if (y != nullptr) call.layout_destroy(y);
    if (x != nullptr) call.layout_destroy(x);
    if (w != nullptr) call.layout_destroy(w);
    if (product != nullptr) call.desc_destroy(product);
    if (handle != nullptr) call.destroy(handle);
  }

  template <class Value>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, Value value) const {
    return call.desc_set(product, attribute, static_cast<const void*>(&value), sizeof(value));
  }

  /// As column-major cuBLASLt sees it: yᵀ [n, m] = w · xᵀ.
  template <class Layer>
  cublasStatus_t describe_product(const Layer& layer, cublasComputeType_t compute,
                                  cudaDataType_t operands, cudaDataType_t result) {
    w_data = layer.w;
    x_data = layer.x;
    y_data = layer.y;
    const auto rows = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
    cublasStatus_t status = call.desc_create(&product, compute, CUDA_R_32F);
    const auto then = [&](auto&& next) {
      if (status == CUBLAS_STATUS_SUCCESS) status = next();
    };
    then([&] { return set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T); });
    then([&] { return set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N); });
    then([&] { return call.layout_create(&w, operands, rows(layer.k), rows(layer.n), layer.k); });
    then([&] { return call.layout_create(&x, operands, rows(layer.k), rows(layer.m), layer.k); });
    then([&] { return call.layout_create(&y, result, rows(layer.n), rows(layer.m), layer.n); });
    return status;
  }

  /// A bias is per row of yᵀ.
  cublasStatus_t describe(const LinearLayer& layer) {
    cublasStatus_t status =
        describe_product(layer, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F);
    if (layer.epilogue == Epilogue::none || status != CUBLAS_STATUS_SUCCESS) return status;
    status = set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, layer.bias);
  }

  cublasStatus_t describe(const BlockScaledLayer& layer) {
    cublasStatus_t status =
        describe_product(layer, CUBLAS_COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_16BF);
    const auto then_set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      if (status == CUBLAS_STATUS_SUCCESS) status = set(attribute, value);
    };
    then_set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
    then_set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
    then_set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, layer.w_scales);
    then_set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, layer.x_scales);
    return status;
  }

  cublasStatus_t choose(std::uint64_t workspace_bytes, int& found) {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasStatus_t status = call.preference_create(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = call.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                 &workspace_bytes, sizeof(workspace_bytes));
    cublasLtMatmulHeuristicResult_t result{};
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = call.heuristic(handle, product, w, x, y, y, preference, 1, &result, &found);
    }
    call.preference_destroy(preference);
    algorithm = result.algo;
    return status;
  }

  /// Everything but the data: the library, the product and its algorithm.
  template <class Layer>
  static Expected<void> prepare(State& state, const Layer& layer, std::int64_t workspace_bytes) {
    LibrarySearch search = cublas_search();
    search.names = {"libcublasLt.so.13"};
    const auto library = DynamicLibrary::open(search);
    if (!library) return library.error();
    const auto functions = lt_functions_of(*library);
    if (!functions) return functions.error();
    // Its code may still be needed by a context that is torn down at exit.
    library->keep_loaded();

    state.call = *functions;
    cublasStatus_t status = state.call.create(&state.handle);
    if (status == CUBLAS_STATUS_SUCCESS) status = state.describe(layer);
    int found = 0;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = state.choose(static_cast<std::uint64_t>(workspace_bytes), found);
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
      return Error{std::string("cuBLASLt could not prepare a layer: ") +
                   state.call.status_name(status)};
    }
    if (found == 0) {
      return Error{"cuBLASLt knows no algorithm for this layer with a workspace of " +
                   std::to_string(workspace_bytes) + " bytes"};
    }
    state.workspace = DeviceMemory(workspace_bytes);
    return {};
  }
};

CublasLtLayer::CublasLtLayer() : state_(std::make_unique<State>()) {}
CublasLtLayer::~CublasLtLayer() = default;

Expected<std::unique_ptr<CublasLtLayer>> CublasLtLayer::open(const LinearLayer& layer) {
  std::unique_ptr<CublasLtLayer> made(new CublasLtLayer());
  if (const auto ready = State::prepare(*made->state_, layer, 0); !ready) return ready.error();
  return made;
}

Expected<std::unique_ptr<CublasLtLayer>> CublasLtLayer::open(const BlockScaledLayer& layer) {
  constexpr std::int64_t kWorkspaceBytes = 32 << 20;  // what NVIDIA recommends for Hopper
  // Rows of w's scales would have to be padded to four.
  check(layer.k % 512 == 0, "a layer with scaled blocks has k in multiples of 512");
  std::unique_ptr<CublasLtLayer> made(new CublasLtLayer());
  const auto ready = State::prepare(*made->state_, layer, kWorkspaceBytes);
  if (!ready) return ready.error();
  return made;
}

void CublasLtLayer::run(CUstream_st* stream) {
  const State& s = *state_;
  const float one = 1, zero = 0;
  const auto status = s.call.matmul(s.handle, s.product, &one, s.w_data, s.w, s.x_data, s.x, &zero,
                                    s.y_data, s.y, s.y_data, s.y, &s.algorithm, s.workspace.data(),
                                    static_cast<std::size_t>(s.workspace.bytes()), stream);
  if (status != CUBLAS_STATUS_SUCCESS) fail(s.call.status_name(status));
}

std::shared_ptr<CublasLtLayer> require_cublas_lt(const LinearLayer& layer) {
  auto opened = CublasLtLayer::open(layer);
  if (!opened) fail(opened.error().message);
  return std::move(*opened);
}

std::shared_ptr<CublasLtLayer> require_block_scaled(const BlockScaledLayer& layer) {
  auto opened = CublasLtLayer::open(layer);
  if (!opened) fail(opened.error().message);
  return std::move(*opened);
}

}  // namespace gauntlet
