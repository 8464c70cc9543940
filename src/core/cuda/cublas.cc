#include "core/cuda/cublas.h"

#include <cublas_v2.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace gauntlet {
namespace {

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

template <class F>
bool find(const DynamicLibrary& library, const char* name, F*& function, Error& missing) {
  const auto found = library.symbol<F>(name);
  if (found) {
    function = *found;
  } else {
    missing = found.error();
  }
  return static_cast<bool>(found);
}

Expected<Functions> functions_of(const DynamicLibrary& library) {
  Functions f;
  Error missing;
  const bool complete =
      find(library, "cublasCreate_v2", f.create, missing) &&
      find(library, "cublasDestroy_v2", f.destroy, missing) &&
      find(library, "cublasSetStream_v2", f.set_stream, missing) &&
      find(library, "cublasSetMathMode", f.set_math_mode, missing) &&
      find(library, "cublasGetStatusName", f.status_name, missing) &&
      find(library, "cublasSgemm_v2_64", f.sgemm, missing) &&
      find(library, "cublasGemmEx_64", f.gemm_ex, missing) &&
      find(library, "cublasGemmStridedBatchedEx_64", f.gemm_strided_batched_ex, missing);
  if (!complete) return missing;
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

LibrarySearch cublas_search() {
  LibrarySearch search = {.names = {"libcublas.so.13"}, .folders = cuda_library_folders()};
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) search.folders.push_back(executable.parent_path());
  return search;
}

Cublas::Cublas() : state_(std::make_unique<State>()) {}

Cublas::~Cublas() {
  if (state_->handle != nullptr) state_->call.destroy(state_->handle);
}

Expected<std::unique_ptr<Cublas>> Cublas::open() { return open(cublas_search()); }

Expected<std::unique_ptr<Cublas>> Cublas::open(const LibrarySearch& search) {
  const auto library = DynamicLibrary::open(search);
  if (!library) return library.error();
  const auto functions = functions_of(*library);
  if (!functions) return functions.error();
  // Its code may still be needed by a context that is torn down at exit.
  library->keep_loaded();
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
  const auto library = DynamicLibrary::open(cublas_search());
  if (library) library->keep_loaded();
  return static_cast<bool>(library);
}

}  // namespace gauntlet
