// Prefill with Hopper's wgmma: warpgroups of 64 rows take keys and values from shared memory as
// they lie. Four warpgroups of two blocks share an SM, so that one's softmax hides behind others'
// products.
#include "kernels/cuda/prefill_attention.cuh"
#include "ptx/fence.cuh"
#include "ptx/wgmma.cuh"

namespace gauntlet::kernels::cuda {
namespace {

using namespace prefill;

struct WgmmaProduct {
  static constexpr int kThreads = 256;
  static constexpr int kTiles = 1;
  static constexpr int kTeamRows = 64;   // of a warpgroup
  static constexpr int kStepBytes = 16;  // unit of a descriptor's address

  /// wgmma reads shared memory as bulk copies do: what threads wrote has to be made visible to it.
  static __device__ void publish() { ptx::fence_proxy_async_shared(); }

  /// Keys are rows of dims: the next 16 dims are 32 bytes further.
  static __device__ void multiply_keys(float (&s)[kTiles][kBlocks][4],
                                       const std::uint32_t (&q)[kTiles][kDimSteps][4],
                                       const uint4* k, int) {
    const std::uint64_t tile = ptx::wgmma_descriptor_128b(k);
    auto& sums = reinterpret_cast<float(&)[4 * kBlocks]>(s[0]);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kDimSteps; ++step) {
      ptx::wgmma_m64n64k16_bf16<ptx::WgmmaB::k_major>(sums, q[0][step],
                                                      tile + step * 32 / kStepBytes, step > 0);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }

  /// Values are rows of what becomes columns: the next 16 keys are 16 rows further.
  static __device__ void multiply_values(float (&out)[kTiles][kDimBlocks][4],
                                         const std::uint32_t (&p)[kTiles][kKeySteps][4],
                                         const uint4* v, int) {
    const std::uint64_t tile = ptx::wgmma_descriptor_128b(v);
    auto& sums = reinterpret_cast<float(&)[4 * kDimBlocks]>(out[0]);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeySteps; ++step) {
      ptx::wgmma_m64n64k16_bf16<ptx::WgmmaB::n_major>(sums, p[0][step],
                                                      tile + step * 16 * 128 / kStepBytes, 1);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }
};

}  // namespace

void prefill_attention_sm90a(const Attention& attention, const Launch& how) {
  launch_prefill<WgmmaProduct>(attention, how);
}

}  // namespace gauntlet::kernels::cuda
