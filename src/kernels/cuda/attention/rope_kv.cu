// One launch for all heads of all tokens, eight lanes each.
#include "core/check.h"
#include "kernels/cuda/attention/rope_kv.cuh"
#include "kernels/cuda/attention/rope_kv.h"
#include "kernels/cuda/launch.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline attention {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = kThreads / kHeadLanes;

__global__ void __launch_bounds__(kThreads) rotate_and_store(RopeKv p) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int token = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x) % kHeadLanes;
  const int num_kv_heads = p.cache.num_kv_heads, num_rows = p.num_heads + 2 * num_kv_heads;
  const int head = static_cast<int>(blockIdx.y * kHeadsPerBlock + threadIdx.x / kHeadLanes);
  if (head >= num_rows) return;

  const TokenPlace place = place_of(p.batch, token);
  Quads x = load_quads(p.qkv + token * p.qkv_stride + std::int64_t{head} * kHeadDim, lane);
  if (head < p.num_heads + num_kv_heads) {
    x = rotate(x, p.rope + std::int64_t{place.position} * kHalfHead + 4 * lane);
  }
  if (head < p.num_heads) {
    store_bf16(p.q + (std::int64_t{token} * p.num_heads + head) * kHeadDim, lane, x);
  } else {
    store_row(p.cache, p.batch, place, head - p.num_heads, lane, x);
  }
}

}  // namespace

void rope_kv(const RopeKv& rope, const Launch& how) {
  if (rope.batch.num_tokens == 0) return;
  check(rope.qkv_stride % 4 == 0, "rope_kv: rows of q, k, v are not 16 bytes aligned");
  const int rows = rope.num_heads + 2 * rope.cache.num_kv_heads;
  const Shape shape{
      .grid = dim3(static_cast<unsigned>(rope.batch.num_tokens),
                   static_cast<unsigned>((rows + kHeadsPerBlock - 1) / kHeadsPerBlock)),
      .block = dim3(kThreads)};
  launch(rotate_and_store, shape, how, rope);
}

}  // namespace gauntlet::kernels::cuda::inline attention
