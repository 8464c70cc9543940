// cuBLASLt through dlopen: products that may end with more than a sum. It comes with cuBLAS, so the
// capability "cublas" says whether it is there.
#pragma once
#include <cstdint>
#include <memory>

#include "core/expected.h"

struct CUstream_st;

namespace gauntlet {

/// What happens to a sum before it is stored.
enum class Epilogue { none, bias_relu };

/// y [m, n] = epilogue(x [m, k] · w [n, k]ᵀ), dense, row-major, fp32 on tf32 tensor cores.
struct LinearLayer {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const float* x = nullptr;
  const float* w = nullptr;
  const float* bias = nullptr;  // [n], of an epilogue that adds one
  float* y = nullptr;
  Epilogue epilogue = Epilogue::none;
};

/// y [m, n] = x [m, k] · w [n, k]ᵀ of e4m3 operands, fp32 sums and a bf16 result, where elements
/// share a scale: of x 128 along k, of w 128 x 128. Sizes are multiples of 128, and k of 512.
struct BlockScaledLayer {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* x = nullptr;
  const void* w = nullptr;
  const float* x_scales = nullptr;  // [k / 128, m]
  const float* w_scales = nullptr;  // [n / 128, k / 128]
  void* y = nullptr;
};

/// A layer with the algorithm that the library's heuristic puts first.
class CublasLtLayer {
 public:
  /// An error names the library and the places searched, or what cuBLASLt said.
  static Expected<std::unique_ptr<CublasLtLayer>> open(const LinearLayer& layer);
  static Expected<std::unique_ptr<CublasLtLayer>> open(const BlockScaledLayer& layer);
  ~CublasLtLayer();
  CublasLtLayer(const CublasLtLayer&) = delete;
  CublasLtLayer& operator=(const CublasLtLayer&) = delete;

  void run(CUstream_st* stream);

 private:
  CublasLtLayer();
  struct State;
  std::unique_ptr<State> state_;
};

/// For a side whose pair declared the need; throws open()'s sentence where there is none.
std::shared_ptr<CublasLtLayer> require_cublas_lt(const LinearLayer& layer);
std::shared_ptr<CublasLtLayer> require_block_scaled(const BlockScaledLayer& layer);

}  // namespace gauntlet
