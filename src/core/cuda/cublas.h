// cuBLAS through dlopen: the binary starts without it, and what needs it says so by the capability
// "cublas". Matrices are row-major here; the turn to cuBLAS's column-major view happens inside.
#pragma once
#include <cstdint>
#include <memory>

#include "core/dtype.h"
#include "core/expected.h"
#include "core/os/dynamic_library.h"

struct CUstream_st;

namespace gauntlet {

/// What cuBLAS may do with fp32 operands.
enum class CublasMath {
  standard,  // fp32 FMA
  pedantic,  // the same, and no reassociation beyond what the call prescribes
  tf32,      // operands cut to tf32 for the tensor cores, sums in fp32
};

enum class Stored { as_is, transposed };

/// C [m, n] = alpha · A [m, k] · B [k, n] + beta · C, dense, row-major. A transposed operand is
/// stored [k, m] or [n, k].
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  Stored a_stored = Stored::as_is;
  Stored b_stored = Stored::as_is;
  DType operands = DType::f32;  // f32, f16 or bf16; sums are fp32
  DType result = DType::f32;
  float alpha = 1;
  float beta = 0;
};

/// `count` products; product i uses the pointers of `first` advanced by i strides (in elements).
struct GemmBatch {
  Gemm first;
  std::int64_t count = 0;
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
  std::int64_t stride_c = 0;
};

/// Where libcublas is looked for: the loader's own search, a toolkit's folders, and beside the
/// executable.
LibrarySearch cublas_search();

/// A cuBLAS handle on the current device.
class Cublas {
 public:
  /// An error names the library and the places searched, or what cuBLAS said.
  static Expected<std::unique_ptr<Cublas>> open();
  static Expected<std::unique_ptr<Cublas>> open(const LibrarySearch& search);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  void set_stream(CUstream_st* stream);
  void set_math(CublasMath math);

  /// cublasSgemm: fp32 operands and result; the math mode decides about tf32.
  void sgemm(const Gemm& gemm);
  /// cublasGemmEx: any supported types, fp32 sums.
  void gemm(const Gemm& gemm);
  /// cublasGemmStridedBatchedEx: all products in one call.
  void gemm_batched(const GemmBatch& batch);

 private:
  Cublas();
  struct State;
  std::unique_ptr<State> state_;
};

/// A handle on `stream` for a side whose pair declared the need; throws open()'s sentence where
/// there is none.
std::shared_ptr<Cublas> require_cublas(CUstream_st* stream);

/// Whether the library can be loaded. Starts no CUDA context, but loads it: a tenth of a second.
bool cublas_available();

}  // namespace gauntlet
