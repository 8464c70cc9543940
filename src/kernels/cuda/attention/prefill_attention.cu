// FlashAttention in the manner of its second version: four warps of 32 rows keep scores and sums in
// registers, pages of 64 keys and values arrive by cp.async while the tensor cores use the last.
#include <cuda_bf16.h>

#include <bit>

#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/prefill_attention.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/exp2.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda::inline attention {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpRows = kPrefillRows / kWarps;
constexpr int kTiles = kWarpRows / 16;       // of 16 rows, of a warp: keys are loaded once for both
constexpr int kBlocks = kPageTokens / 8;     // of 8 keys, of a page
constexpr int kDimBlocks = kHeadDim / 8;     // of 8 dims
constexpr int kDimSteps = kHeadDim / 16;     // of a product over dims
constexpr int kKeySteps = kPageTokens / 16;  // of a product over keys
constexpr int kStages = 3;
constexpr int kPageChunks = kPageTokens * kRowChunks;
static_assert(kWarpRows == 32 && kPageChunks % kThreads == 0);
static_assert(kThreads / kRowChunks % 8 == 0, "a thread's chunks have one place in the swizzle");
static_assert(kThreads == 2 * kPageTokens, "a thread brings one scale");

template <KvFormat kFormat>
struct Smem;

template <>
struct Smem<KvFormat::bf16> {
  alignas(128) uint4 q[kPrefillRows * kRowChunks];  // later the output
  uint4 k[kStages][kPageChunks];
  uint4 v[kStages][kPageChunks];
};

/// Elements arrive as they are stored and are made bf16 by the thread that fetched them.
template <>
struct Smem<KvFormat::fp8> {
  alignas(128) uint4 q[kPrefillRows * kRowChunks];
  uint4 k[2][kPageChunks];
  uint4 v[2][kPageChunks];
  uint4 raw_k[kStages][kPageChunks / 2];
  uint4 raw_v[kStages][kPageChunks / 2];
  float k_scale[kStages][kPageTokens];
  float v_scale[kStages][kPageTokens];
};

/// A block's share: tokens [first, first + count) of a sequence, one KV head.
struct Tile {
  int sequence;
  int first_row;  // of q
  int count;      // not positive: nothing to do
  int position;   // of the first token
};

__device__ Tile find_tile(const AttentionBatch& batch, int tile, int tile_tokens) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int sequence = -1;
  for (int s = 0; s < batch.num_sequences; s += 32) {
    const bool begun =
        s + lane < batch.num_sequences &&
        prefill_first_tile(batch.first_token[s + lane], s + lane, tile_tokens) <= tile;
    sequence += __popc(__ballot_sync(0xFFFFFFFF, begun));
  }
  const int begin = batch.first_token[sequence], end = batch.first_token[sequence + 1];
  const int first = (tile - prefill_first_tile(begin, sequence, tile_tokens)) * tile_tokens;
  return {.sequence = sequence,
          .first_row = begin + first,
          .count = min(tile_tokens, end - begin - first),
          .position = batch.context[sequence] + first};
}

/// What a warp carries over the pages. Lane l has rows l / 4 and 8 further of each of its tiles.
struct Rows {
  float out[kTiles][kDimBlocks][4];
  float max[kTiles][2];  // in base 2, scaled
  float sum[kTiles][2];  // of this lane's columns
};

__device__ void multiply_keys(float (&s)[kTiles][kBlocks][4],
                              const std::uint32_t (&q)[kTiles][kDimSteps][4], const uint4* k,
                              int lane) {
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

__device__ void multiply_values(float (&out)[kTiles][kDimBlocks][4],
                                const std::uint32_t (&p)[kTiles][kKeySteps][4], const uint4* v,
                                int lane) {
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

/// Hides keys after a row's position and before its window. `behind` is the row's position less
/// that of the lane's first key.
__device__ void hide(float (&s)[kBlocks][4], int half, int behind, int window) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int key = n * 8 + i;
      if (key > behind || key <= behind - window) s[n][2 * half + i] = kHidden;
    }
  }
}

/// Scores to weights relative to the new maximum, which `rows` is brought to.
__device__ void soften(Rows& rows, float (&s)[kTiles][kBlocks][4]) {
  float shrink[kTiles][2];
  bool grown = false;
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float max = s[m][0][2 * half];
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        max = fmaxf(max, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
      }
      max = fmaxf(max, __shfl_xor_sync(0xFFFFFFFF, max, 1));
      max = fmaxf(max, __shfl_xor_sync(0xFFFFFFFF, max, 2));
      max = fmaxf(rows.max[m][half], max * kScoreScale);
      grown |= max > rows.max[m][half];
      shrink[m][half] = ptx::exp2_approx(rows.max[m][half] - max);
      rows.max[m][half] = max;
      float sum = rows.sum[m][half] * shrink[m][half];
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          s[m][n][i] = ptx::exp2_approx(fmaf(s[m][n][i], kScoreScale, -max));
          sum += s[m][n][i];
        }
      }
      rows.sum[m][half] = sum;
    }
  }
  if (!__any_sync(0xFFFFFFFF, grown)) return;  // the usual case once a row has seen its peaks
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kDimBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) rows.out[m][n][i] *= shrink[m][i / 2];
    }
  }
}

/// Multiplies columns by a scale per key.
__device__ void scale_columns(float (&s)[kTiles][kBlocks][4], const float* scale, int lane) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
    const float2 pair = *reinterpret_cast<const float2*>(scale + n * 8 + lane % 4 * 2);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      s[m][n][0] *= pair.x, s[m][n][1] *= pair.y;
      s[m][n][2] *= pair.x, s[m][n][3] *= pair.y;
    }
  }
}

/// Weights as the left operand of the product with values: the accumulators' order is that
/// operand's.
__device__ void pack_weights(std::uint32_t (&p)[kTiles][kKeySteps][4],
                             const float (&s)[kTiles][kBlocks][4]) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int step = 0; step < kKeySteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&pair)[4] = s[m][2 * step + i / 2];
        p[m][step][i] = pack_bf16(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
      }
    }
  }
}

struct Params {
  Attention attention;
  int group_shift;  // log2 of the query heads of a KV head
  int num_tiles;
};

template <KvFormat kFormat>
__global__ void __launch_bounds__(kThreads, 2) attend(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& smem = *reinterpret_cast<Smem<kFormat>*>(memory);
  const Attention& a = p.attention;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int kv_heads = a.cache.num_kv_heads, group = 1 << p.group_shift;
  // Late tokens have the most keys: they go first, and the short tiles fill the end.
  const int kv_head = static_cast<int>(blockIdx.x) % kv_heads;
  const int number = p.num_tiles - 1 - static_cast<int>(blockIdx.x) / kv_heads;

  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const Tile tile = find_tile(a.batch, number, kPrefillRows >> p.group_shift);
  if (tile.count <= 0) return;
  const int end = tile.position + tile.count;
  const int window = a.window > 0 ? a.window : end;
  const int first_page = max(tile.position - window + 1, 0) / kPageTokens;
  const int num_pages = (end - 1) / kPageTokens + 1 - first_page;
  const std::int32_t* table =
      a.batch.table + std::int64_t{tile.sequence} * a.batch.table_stride + first_page;

  const auto fetch_q = [&] {
    for (int i = thread; i < kPrefillRows * kRowChunks; i += kThreads) {
      const int row = i / kRowChunks, token = row >> p.group_shift, head = row & (group - 1);
      const std::int64_t from =
          std::int64_t{tile.first_row + token} * a.num_heads + kv_head * group + head;
      const bool there = token < tile.count;
      ptx::cp_async_16(
          smem.q + swizzled(row, i % kRowChunks),
          reinterpret_cast<const uint4*>(a.q) + (there ? from : 0) * kRowChunks + i % kRowChunks,
          there ? 16 : 0);
    }
  };

  // Rows past the last token may never have been written: they are zero here, so that a weight of
  // zero times their value is zero.
  const auto fetch_page = [&](int i) {
    if (i >= num_pages) return;
    const int page = table[i], stage = i % kStages;
    const int rows = page < 0 ? 0 : end - (first_page + i) * kPageTokens;
    const std::int64_t first = kv_row(kv_heads, max(page, 0), kv_head, 0);
    const auto copy_rows = [&](uint4* to, const void* from, int row_chunks, auto&& place) {
      const uint4* const source = static_cast<const uint4*>(from) + first * row_chunks + thread;
#pragma unroll
      for (int c = 0; c < kPageTokens * row_chunks; c += kThreads) {
        const int row = (thread + c) / row_chunks;
        ptx::cp_async_16(to + place(thread + c), source + c, row < rows ? 16 : 0);
      }
    };
    if constexpr (kFormat == KvFormat::bf16) {
      const auto place = [](int c) { return swizzled(c / kRowChunks, c % kRowChunks); };
      copy_rows(smem.k[stage], a.cache.k, kRowChunks, place);
      copy_rows(smem.v[stage], a.cache.v, kRowChunks, place);
    } else {
      const auto place = [](int c) { return c; };
      copy_rows(smem.raw_k[stage], a.cache.k, kFp8RowChunks, place);
      copy_rows(smem.raw_v[stage], a.cache.v, kFp8RowChunks, place);
      const int row = thread % kPageTokens;
      const bool is_k = thread < kPageTokens;
      ptx::cp_async_4((is_k ? smem.k_scale : smem.v_scale)[stage] + row,
                      (is_k ? a.cache.k_scale : a.cache.v_scale) + first + row, row < rows ? 4 : 0);
    }
  };

  /// Each thread makes bf16 of the chunks it copied itself, which needs no barrier.
  const auto unpack_page = [&](int i) {
    if constexpr (kFormat == KvFormat::fp8) {
      const auto unpack = [&](uint4* to, const uint4* raw) {
#pragma unroll
        for (int c = thread; c < kPageChunks / 2; c += kThreads) {
          const uint4 bytes = raw[c];
          const int row = c / kFp8RowChunks, chunk = c % kFp8RowChunks * 2;
          to[swizzled(row, chunk)] =
              make_uint4(fp8_low_to_bf16(bytes.x), fp8_high_to_bf16(bytes.x),
                         fp8_low_to_bf16(bytes.y), fp8_high_to_bf16(bytes.y));
          to[swizzled(row, chunk + 1)] =
              make_uint4(fp8_low_to_bf16(bytes.z), fp8_high_to_bf16(bytes.z),
                         fp8_low_to_bf16(bytes.w), fp8_high_to_bf16(bytes.w));
        }
      };
      unpack(smem.k[i % 2], smem.raw_k[i % kStages]);
      unpack(smem.v[i % 2], smem.raw_v[i % kStages]);
    }
  };

  fetch_q();
  ptx::cp_async_commit_group();
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    fetch_page(i);
    ptx::cp_async_commit_group();
  }

  const int first_row = warp * kWarpRows;
  const auto row_of = [&](int m, int half) { return first_row + 16 * m + 8 * half + lane / 4; };
  Rows rows{};
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int head = kv_head * group + (row_of(m, half) & (group - 1));
      rows.max[m][half] = sink_logit(a.sinks[head]);
      rows.sum[m][half] = lane % 4 == 0 ? 1.0f : 0.0f;  // the sink's own weight, once for a row
    }
  }

  ptx::cp_async_wait_group<kStages - 1>();
  __syncthreads();
  std::uint32_t q[kTiles][kDimSteps][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int step = 0; step < kDimSteps; ++step) {
      ptx::ldmatrix_x4(q[m][step],
                       smem.q + swizzled(first_row + 16 * m + lane % 16, 2 * step + lane / 16));
    }
  }

  const bool has_rows = first_row >> p.group_shift < tile.count;
  for (int i = 0; i < num_pages; ++i) {
    ptx::cp_async_wait_group<kStages - 2>();
    unpack_page(i);
    __syncthreads();  // the page is there, and everyone has left the one before
    fetch_page(i + kStages - 1);
    ptx::cp_async_commit_group();
    if (!has_rows) continue;

    const int tile_stage = kFormat == KvFormat::bf16 ? i % kStages : i % 2;
    float s[kTiles][kBlocks][4] = {};
    multiply_keys(s, q, smem.k[tile_stage], lane);
    if constexpr (kFormat == KvFormat::fp8) scale_columns(s, smem.k_scale[i % kStages], lane);

    const int key = (first_page + i) * kPageTokens;
    const bool all_seen = key + kPageTokens - 1 <= tile.position && key > end - 1 - window;
    if (!all_seen) {
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int position = tile.position + (row_of(m, half) >> p.group_shift);
          hide(s[m], half, position - key - lane % 4 * 2, window);
        }
      }
    }
    soften(rows, s);
    if constexpr (kFormat == KvFormat::fp8) scale_columns(s, smem.v_scale[i % kStages], lane);
    std::uint32_t weights[kTiles][kKeySteps][4];
    pack_weights(weights, s);
    multiply_values(rows.out, weights, smem.v[tile_stage], lane);
  }
  if (!has_rows) return;

  // Rows of q were this warp's alone since they were loaded: the output takes their place.
  auto* const staged = reinterpret_cast<std::uint32_t*>(smem.q);
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = rows.sum[m][half];
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
      const float inverse = 1.0f / sum;
#pragma unroll
      for (int n = 0; n < kDimBlocks; ++n) {
        staged[swizzled(row_of(m, half), n) * 4 + lane % 4] =
            pack_bf16(rows.out[m][n][2 * half] * inverse, rows.out[m][n][2 * half + 1] * inverse);
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < kWarpRows * kRowChunks; i += 32) {
    const int row = first_row + i / kRowChunks, token = row >> p.group_shift;
    if (token >= tile.count) break;
    const std::int64_t to =
        std::int64_t{tile.first_row + token} * a.num_heads + kv_head * group + (row & (group - 1));
    reinterpret_cast<uint4*>(a.out)[to * kRowChunks + i % kRowChunks] =
        smem.q[swizzled(row, i % kRowChunks)];
  }
}

template <KvFormat kFormat>
void launch_tiles(const Params& params, const Launch& how) {
  constexpr std::size_t kBytes = sizeof(Smem<kFormat>);
  allow_shared_memory<attend<kFormat>>();
  const int blocks = params.num_tiles * params.attention.cache.num_kv_heads;
  launch(attend<kFormat>,
         {.grid = dim3(static_cast<unsigned>(blocks)),
          .block = dim3(kThreads),
          .shared_bytes = kBytes},
         how, params);
}

}  // namespace

void prefill_attention(const Attention& attention, const Launch& how) {
  const int group = checked_group(attention);
  if (attention.batch.num_tokens == 0) return;
  const Params params{.attention = attention,
                      .group_shift = std::countr_zero(static_cast<unsigned>(group)),
                      .num_tiles = prefill_tiles(attention.batch, kPrefillRows / group)};
  if (attention.cache.format == KvFormat::bf16) {
    launch_tiles<KvFormat::bf16>(params, how);
  } else {
    launch_tiles<KvFormat::fp8>(params, how);
  }
}

}  // namespace gauntlet::kernels::cuda::inline attention
