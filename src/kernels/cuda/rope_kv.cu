// Eight lanes turn one head of one token: each holds four dims and the four that rotate with them,
// so that loads are 16 bytes and the amax of an fp8 row is three shuffles.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "core/check.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_kv.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 8;  // of a head
constexpr int kHeadsPerBlock = kThreads / kLanes;
constexpr int kHalf = kHeadDim / 2;
constexpr float kFp8Max = 448;
static_assert(kLanes * 4 == kHalf, "a lane holds four pairs");

/// Dims 4l to 4l + 3 and those 32 further on.
struct Quads {
  float4 low, high;
};

__device__ Quads rotate(const Quads& x, const float2* rope) {
  const float4 a = reinterpret_cast<const float4*>(rope)[0];  // cos, sin, cos, sin
  const float4 b = reinterpret_cast<const float4*>(rope)[1];
  return {.low = {x.low.x * a.x - x.high.x * a.y, x.low.y * a.z - x.high.y * a.w,
                  x.low.z * b.x - x.high.z * b.y, x.low.w * b.z - x.high.w * b.w},
          .high = {x.high.x * a.x + x.low.x * a.y, x.high.y * a.z + x.low.y * a.w,
                   x.high.z * b.x + x.low.z * b.y, x.high.w * b.z + x.low.w * b.w}};
}

__device__ void store_bf16(__nv_bfloat16* row, int lane, const Quads& x) {
  const auto pack = [](const float4& f) {
    return make_uint2(pack_bf16(f.x, f.y), pack_bf16(f.z, f.w));
  };
  reinterpret_cast<uint2*>(row)[lane] = pack(x.low);
  reinterpret_cast<uint2*>(row + kHalf)[lane] = pack(x.high);
}

__device__ float largest(const float4& f) {
  return fmaxf(fmaxf(fabsf(f.x), fabsf(f.y)), fmaxf(fabsf(f.z), fabsf(f.w)));
}

/// The eight lanes of a row call this together; other rows of the warp may be elsewhere.
__device__ void store_fp8(std::uint8_t* row, float* scale, int lane, const Quads& x) {
  const unsigned row_lanes = 0xFFu << (threadIdx.x & (32 - kLanes));
  float amax = fmaxf(largest(x.low), largest(x.high));
#pragma unroll
  for (int step = 1; step < kLanes; step *= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(row_lanes, amax, step));
  }
  const float inverse = amax > 0 ? kFp8Max / amax : 0;
  const auto pack = [&](const float4& f) {
    const __nv_fp8x4_e4m3 packed(
        make_float4(f.x * inverse, f.y * inverse, f.z * inverse, f.w * inverse));
    return packed.__x;
  };
  reinterpret_cast<std::uint32_t*>(row)[lane] = pack(x.low);
  reinterpret_cast<std::uint32_t*>(row + kHalf)[lane] = pack(x.high);
  if (lane == 0) *scale = amax / kFp8Max;
}

__global__ void __launch_bounds__(kThreads) rotate_and_store(RopeKv p) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int token = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x) % kLanes;
  const int num_kv_heads = p.cache.num_kv_heads, num_rows = p.num_heads + 2 * num_kv_heads;
  const int head = static_cast<int>(blockIdx.y * kHeadsPerBlock + threadIdx.x / kLanes);
  if (head >= num_rows) return;

  const int sequence = p.batch.token_sequence[token];
  const int position = p.batch.context[sequence] + token - p.batch.first_token[sequence];
  const auto* from =
      reinterpret_cast<const float4*>(p.qkv + token * p.qkv_stride + std::int64_t{head} * kHeadDim);
  Quads x{.low = from[lane], .high = from[lane + kLanes]};

  const bool is_v = head >= p.num_heads + num_kv_heads;
  if (!is_v) x = rotate(x, p.rope + std::int64_t{position} * kHalf + 4 * lane);
  if (head < p.num_heads) {
    store_bf16(p.q + (std::int64_t{token} * p.num_heads + head) * kHeadDim, lane, x);
    return;
  }

  const int page =
      p.batch.table[std::int64_t{sequence} * p.batch.table_stride + position / kPageTokens];
  if (page < 0) return;
  const int kv_head = (head - p.num_heads) % num_kv_heads;
  const std::int64_t row = kv_row(num_kv_heads, page, kv_head, position % kPageTokens);
  void* const to = is_v ? p.cache.v : p.cache.k;
  if (p.cache.format == KvFormat::bf16) {
    store_bf16(static_cast<__nv_bfloat16*>(to) + row * kHeadDim, lane, x);
  } else {
    store_fp8(static_cast<std::uint8_t*>(to) + row * kHeadDim,
              (is_v ? p.cache.v_scale : p.cache.k_scale) + row, lane, x);
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

}  // namespace gauntlet::kernels::cuda
