#include "core/cuda/cublas.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gauntlet {
namespace {

constexpr const char* kLibrary = "libcublas.so.13";

/// Functions as the header declares them, found in the library at run time.
struct Functions {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGetStatusName) status_name = nullptr;
  decltype(&cublasSgemm_v2_64) sgemm = nullptr;
  decltype(&cublasGemmEx_64) gemm_ex = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) gemm_strided_batched_ex = nullptr;
};

// The library stays loaded: at exit its code may still be needed by a context that is being torn
// down.
void* load(const std::string& path) {
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

Expected<Functions> load_functions(std::span<const std::string> paths) {
  void* library = nullptr;
  std::string searched;
  for (const std::string& path : paths) {
    if ((library = load(path)) != nullptr) break;
    searched += (searched.empty() ? "" : ", ") + path;
  }
  if (library == nullptr) {
    return Error{std::string(kLibrary) + " not found (tried " + searched +
                 "); install cuBLAS 13 or set CUDA_HOME to its toolkit"};
  }
  Functions f;
  const bool complete =
      find(library, "cublasCreate_v2", f.create) && find(library, "cublasDestroy_v2", f.destroy) &&
      find(library, "cublasSetStream_v2", f.set_stream) &&
      find(library, "cublasSetMathMode", f.set_math_mode) &&
      find(library, "cublasGetStatusName", f.status_name) &&
      find(library, "cublasSgemm_v2_64", f.sgemm) && find(library, "cublasGemmEx_64", f.gemm_ex) &&
      find(library, "cublasGemmStridedBatchedEx_64", f.gemm_strided_batched_ex);
  if (!complete)
    return Error{std::string(kLibrary) + " lacks a function of cuBLAS 13: " + dlerror()};
  return f;
}

cudaDataType data_type(DType type) {
  switch (type) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      fail("cuBLAS products here are f32, f16 or bf16, not " + std::string(name_of(type)));
  }
}

/// A row-major product as column-major cuBLAS sees it: Cᵀ = Bᵀ·Aᵀ, so the operands swap places.
struct ColumnMajor {
  cublasOperation_t first_op;
  cublasOperation_t second_op;
  std::int64_t first_stride;
  std::int64_t second_stride;

  explicit ColumnMajor(const Gemm& g)
      : first_op(g.b_stored == Stored::as_is ? CUBLAS_OP_N : CUBLAS_OP_T),
        second_op(g.a_stored == Stored::as_is ? CUBLAS_OP_N : CUBLAS_OP_T),
        first_stride(g.b_stored == Stored::as_is ? g.n : g.k),
        second_stride(g.a_stored == Stored::as_is ? g.k : g.m) {}
};

}  // namespace

struct Cublas::State {
  Functions call;
  cublasHandle_t handle = nullptr;

  void check_status(cublasStatus_t status,
                    std::source_location where = std::source_location::current()) const {
    if (status != CUBLAS_STATUS_SUCCESS) fail(call.status_name(status), where);
  }
};

std::vector<std::string> cublas_paths() {
  std::vector<std::string> paths = {kLibrary};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      paths.push_back(std::string(home) + "/lib64/" + kLibrary);
    }
  }
  paths.push_back(std::string("/usr/local/cuda/lib64/") + kLibrary);
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) paths.push_back(executable.parent_path() / kLibrary);
  return paths;
}

Cublas::Cublas() : state_(std::make_unique<State>()) {}

Cublas::~Cublas() {
  if (state_->handle != nullptr) state_->call.destroy(state_->handle);
}

Expected<std::unique_ptr<Cublas>> Cublas::open() { return open(cublas_paths()); }

Expected<std::unique_ptr<Cublas>> Cublas::open(std::span<const std::string> paths) {
  auto functions = load_functions(paths);
  if (!functions) return functions.error();
  std::unique_ptr<Cublas> cublas(new Cublas());
  State& state = *cublas->state_;
  state.call = *functions;
  if (const auto status = state.call.create(&state.handle); status != CUBLAS_STATUS_SUCCESS) {
    state.handle = nullptr;
    return Error{std::string("cuBLAS could not start on this device: ") +
                 state.call.status_name(status)};
  }
  return cublas;
}

void Cublas::set_stream(CUstream_st* stream) {
  state_->check_status(state_->call.set_stream(state_->handle, stream));
}

void Cublas::set_math(CublasMath math) {
  const auto mode = math == CublasMath::standard   ? CUBLAS_DEFAULT_MATH
                    : math == CublasMath::pedantic ? CUBLAS_PEDANTIC_MATH
                                                   : CUBLAS_TF32_TENSOR_OP_MATH;
  state_->check_status(state_->call.set_math_mode(state_->handle, mode));
}

void Cublas::sgemm(const Gemm& g) {
  check(g.operands == DType::f32 && g.result == DType::f32, "sgemm takes f32 only");
  const ColumnMajor view(g);
  state_->check_status(state_->call.sgemm(
      state_->handle, view.first_op, view.second_op, g.n, g.m, g.k, &g.alpha,
      static_cast<const float*>(g.b), view.first_stride, static_cast<const float*>(g.a),
      view.second_stride, &g.beta, static_cast<float*>(g.c), g.n));
}

void Cublas::gemm(const Gemm& g) {
  const ColumnMajor view(g);
  const auto operands = data_type(g.operands);
  state_->check_status(state_->call.gemm_ex(
      state_->handle, view.first_op, view.second_op, g.n, g.m, g.k, &g.alpha, g.b, operands,
      view.first_stride, g.a, operands, view.second_stride, &g.beta, g.c, data_type(g.result), g.n,
      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

void Cublas::gemm_batched(const GemmBatch& batch) {
  const Gemm& g = batch.first;
  const ColumnMajor view(g);
  const auto operands = data_type(g.operands);
  state_->check_status(state_->call.gemm_strided_batched_ex(
      state_->handle, view.first_op, view.second_op, g.n, g.m, g.k, &g.alpha, g.b, operands,
      view.first_stride, batch.stride_b, g.a, operands, view.second_stride, batch.stride_a, &g.beta,
      g.c, data_type(g.result), g.n, batch.stride_c, batch.count, CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT));
}

std::shared_ptr<Cublas> require_cublas(CUstream_st* stream) {
  auto opened = Cublas::open();
  if (!opened) fail(opened.error().message);
  (*opened)->set_stream(stream);
  return std::move(*opened);
}

bool cublas_available() {
  for (const std::string& path : cublas_paths()) {
    if (load(path) != nullptr) return true;
  }
  return false;
}

}  // namespace gauntlet
