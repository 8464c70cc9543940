// Prefill in the manner of FlashAttention's second version, for any GPU from Ampere on: four warps
// of 32 rows, so that two tiles of 16 rows share each operand a warp loads.
#include "kernels/cuda/prefill_attention.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda {
namespace {

using namespace prefill;

struct MmaProduct {
  static constexpr int kThreads = 128;
  static constexpr int kTiles = 2;
  static constexpr int kTeamRows = 32;  // of a warp

  static __device__ void publish() {}

  static __device__ void multiply_keys(float (&s)[kTiles][kBlocks][4],
                                       const std::uint32_t (&q)[kTiles][kDimSteps][4],
                                       const uint4* k, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < kBlocks; n += 2) {
        std::uint32_t b[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          ptx::ldmatrix_x4(b[i], k + swizzled((n + i) * 8 + lane % 8, 4 * half + lane / 8));
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int m = 0; m < kTiles; ++m) {
              ptx::mma_m16n8k16_bf16(s[m][n + i], q[m][2 * half + step],
                                     {b[i][2 * step], b[i][2 * step + 1]});
            }
          }
        }
      }
    }
  }

  static __device__ void multiply_values(float (&out)[kTiles][kDimBlocks][4],
                                         const std::uint32_t (&p)[kTiles][kKeySteps][4],
                                         const uint4* v, int lane) {
#pragma unroll
    for (int step = 0; step < kKeySteps; ++step) {
#pragma unroll
      for (int n = 0; n < kDimBlocks; n += 2) {
        std::uint32_t b[4];
        ptx::ldmatrix_x4_trans(b, v + swizzled(step * 16 + lane % 16, n + lane / 16));
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          ptx::mma_m16n8k16_bf16(out[m][n], p[m][step], {b[0], b[1]});
          ptx::mma_m16n8k16_bf16(out[m][n + 1], p[m][step], {b[2], b[3]});
        }
      }
    }
  }
};

}  // namespace

void prefill_attention(const Attention& attention, const Launch& how) {
  launch_prefill<MmaProduct>(attention, how);
}

}  // namespace gauntlet::kernels::cuda
