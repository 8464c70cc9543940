// The matrix rates through cuBLASLt, opened at run time: what a whole product reaches, and the only
// method that knows the tensor cores of every GPU.
#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "core/check.h"
#include "core/cuda/cublas.h"
#include "core/os/dynamic_library.h"
#include "lab/ceilings/ceilings_cuda.h"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

struct Functions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
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

  bool load(const DynamicLibrary& library) {
    bool complete = true;
    const auto find = [&]<class F>(F*& function, const char* name) {
      const auto found = library.symbol<F>(name);
      if (found) function = *found;
      complete = complete && found;
    };
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(desc_create, "cublasLtMatmulDescCreate");
    find(desc_destroy, "cublasLtMatmulDescDestroy");
    find(desc_set, "cublasLtMatmulDescSetAttribute");
    find(layout_create, "cublasLtMatrixLayoutCreate");
    find(layout_destroy, "cublasLtMatrixLayoutDestroy");
    find(preference_create, "cublasLtMatmulPreferenceCreate");
    find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(matmul, "cublasLtMatmul");
    return complete;
  }
};

struct Library {
  DynamicLibrary loaded;
  Functions functions = {};
  cublasLtHandle_t handle = nullptr;

  explicit Library(DynamicLibrary library) : loaded(std::move(library)) {
    // Its code may run until the context is torn down at exit.
    dlopen(loaded.path().c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle) functions.destroy(handle);
  }

  static std::shared_ptr<Library> open() {
    LibrarySearch search = cublas_search();
    search.names = {fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)};
    auto found = DynamicLibrary::open(search);
    if (!found) return nullptr;
    auto library = std::make_shared<Library>(std::move(*found));
    if (!library->functions.load(library->loaded)) return nullptr;
    if (library->functions.create(&library->handle) != CUBLAS_STATUS_SUCCESS) return nullptr;
    return library;
  }
};

struct Type {
  const char* ceiling;
  cudaDataType operand;
  cudaDataType result;
  cublasComputeType_t compute;
  cudaDataType scale;
  std::int64_t operand_bytes;
  RandomWords words;
};
constexpr std::array<Type, 6> kTypes = {{
    {"matrix_bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 2, kRandomBf16},
    {"matrix_f16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 2, kRandomF16},
    {"matrix_tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, 4,
     kRandomF32},
    {"matrix_f8e4m3", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1,
     kRandomF8e4m3},
    {"matrix_i8", CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, 1, kRandomI8},
    {"matrix_f64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, 8, kRandomF32},
}};

/// One square product with its descriptors: d = aᵀ·b, the layout every type supports.
class Product {
 public:
  Product(std::shared_ptr<Library> library, const Type& type, std::uint64_t size)
      : library_(std::move(library)), type_(type) {
    const Functions& f = library_->functions;
    const auto ld = static_cast<std::int64_t>(size);
    usable_ = f.desc_create(&desc_, type.compute, type.scale) == CUBLAS_STATUS_SUCCESS &&
              f.layout_create(&operand_, type.operand, size, size, ld) == CUBLAS_STATUS_SUCCESS &&
              f.layout_create(&result_, type.result, size, size, ld) == CUBLAS_STATUS_SUCCESS &&
              f.preference_create(&preference_) == CUBLAS_STATUS_SUCCESS && choose();
  }
  ~Product() {
    const Functions& f = library_->functions;
    if (preference_) f.preference_destroy(preference_);
    if (result_) f.layout_destroy(result_);
    if (operand_) f.layout_destroy(operand_);
    if (desc_) f.desc_destroy(desc_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  bool usable() const { return usable_; }

  struct Memory {
    const void* a;
    const void* b;
    void* d;
    void* workspace;
  };
  void run(const Memory& memory, cudaStream_t stream) const {
    // One and zero in each of the scale types.
    const float one_f32 = 1, zero_f32 = 0;
    const double one_f64 = 1, zero_f64 = 0;
    const std::int32_t one_i32 = 1, zero_i32 = 0;
    const void* one = &one_f32;
    const void* zero = &zero_f32;
    if (type_.scale == CUDA_R_64F) one = &one_f64, zero = &zero_f64;
    if (type_.scale == CUDA_R_32I) one = &one_i32, zero = &zero_i32;
    const cublasStatus_t status = library_->functions.matmul(
        library_->handle, desc_, one, memory.a, operand_, memory.b, operand_, zero, memory.d,
        result_, memory.d, result_, &choice_.algo, memory.workspace, kWorkspaceBytes, stream);
    check(status == CUBLAS_STATUS_SUCCESS, "cublasLtMatmul refused the algorithm it proposed");
  }

 private:
  bool choose() {
    const Functions& f = library_->functions;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    f.desc_set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed));
    f.preference_set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                     sizeof(kWorkspaceBytes));
    int found = 0;
    const cublasStatus_t status = f.heuristic(library_->handle, desc_, operand_, operand_, result_,
                                              result_, preference_, 1, &choice_, &found);
    return status == CUBLAS_STATUS_SUCCESS && found == 1;
  }

  std::shared_ptr<Library> library_;
  Type type_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t operand_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_ = {};
  bool usable_ = false;
};

}  // namespace

std::vector<Probe> cuda_cublas_probes(const CudaSpace& space) {
  std::vector<Probe> probes;
  const auto library = Library::open();
  if (!library) return probes;
  // Operands lie in the two halves of one buffer, result and workspace in those of the other.
  const std::int64_t half = space.bytes / 2;
  const std::int64_t size = 8 * 8192 * 8192 <= half ? 8192 : 2048;
  static_assert(kWorkspaceBytes >= 2048 * 2048 * 8);
  if (half < static_cast<std::int64_t>(kWorkspaceBytes)) return probes;
  for (const Type& type : kTypes) {
    auto product = std::make_shared<Product>(library, type, static_cast<std::uint64_t>(size));
    if (!product->usable()) continue;
    auto* operands = static_cast<std::byte*>(space.from);
    auto* results = static_cast<std::byte*>(space.to);
    const Product::Memory memory{operands, operands + half, results, results + half};
    const auto edge = static_cast<double>(size);
    probes.push_back(
        {.ceiling = type.ceiling,
         .method = fmt::format("cuBLASLt {}³", size),
         .amount = 2 * edge * edge * edge,
         .run = [product, memory, stream = space.stream] { product->run(memory, stream); },
         .prepare =
             [=, words = type.words, bytes = size * size * type.operand_bytes] {
               fill_random(operands, bytes, words, space.stream);
               fill_random(operands + half, bytes, words, space.stream);
             }});
  }
  return probes;
}

}  // namespace gauntlet::lab::inline ceilings
