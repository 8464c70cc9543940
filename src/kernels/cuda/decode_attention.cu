// Eight warps each walk pieces of 16 positions with a ring of their own, no barrier between them;
// the query heads of a KV head are the rows of one tensor-core tile.
#include <cuda_bf16.h>

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/decode_attention.h"
#include "kernels/cuda/launch.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/exp2.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPieceTokens = 16;
constexpr int kPiecesPerPage = kPageTokens / kPieceTokens;
constexpr int kDimBlocks = kHeadDim / 8;
constexpr int kDimSteps = kHeadDim / 16;
constexpr int kSlots = kDimBlocks / 2;  // of four sums of a lane
static_assert(kMaxGroup == 8, "the upper half of a 16-row tile holds the heads");

template <KvFormat kFormat>
struct Piece;

template <>
struct Piece<KvFormat::bf16> {
  static constexpr int kStages = 3;
  uint4 k[kPieceTokens * kRowChunks];
  uint4 v[kPieceTokens * kRowChunks];
};

template <>
struct Piece<KvFormat::fp8> {
  static constexpr int kStages = 4;
  uint4 k[kPieceTokens * kFp8RowChunks];
  uint4 v[kPieceTokens * kFp8RowChunks];
  float k_scale[kPieceTokens];
  float v_scale[kPieceTokens];
};

/// Softmax over some of a sequence's positions, not yet divided: sums relative to 2^max.
struct Partial {
  float4 out[kSlots][32];  // in the order of the accumulators of a warp
  float max[kMaxGroup];
  float sum[kMaxGroup];
};
static_assert(sizeof(Partial) == kDecodePartialBytes);

template <KvFormat kFormat>
struct Smem {
  union {
    Piece<kFormat> ring[kWarps][Piece<kFormat>::kStages];
    Partial parts[kWarps];
  };
  bool is_last;
};

/// Place of a chunk of an fp8 row: two rows share a 128-byte line, and the eight-byte reads of four
/// even rows fall into different banks.
__device__ __forceinline__ int fp8_place(int row, int chunk) {
  const int line = row / 2;
  return line * 8 + ((row % 2 * kFp8RowChunks + chunk) ^ (line % 4 * 2));
}

/// A lane's view of head lane / 4.
struct State {
  float max = kLowest;
  float sum = 0;
  float4 out[kSlots] = {};
};

__device__ void scale_by(float4& x, float factor) {
  x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
}
__device__ void add_scaled(float4& sum, const float4& x, float factor) {
  sum.x = fmaf(x.x, factor, sum.x), sum.y = fmaf(x.y, factor, sum.y);
  sum.z = fmaf(x.z, factor, sum.z), sum.w = fmaf(x.w, factor, sum.w);
}

__device__ void store_part(Partial& part, const State& state, int lane) {
#pragma unroll
  for (int i = 0; i < kSlots; ++i) part.out[i][lane] = state.out[i];
  if (lane % 4 == 0) part.max[lane / 4] = state.max, part.sum[lane / 4] = state.sum;
}

/// One slot of one lane, over the parts in their order. `sink` is a logit or kLowest.
struct Joined {
  float4 out;
  float max, sum;
};
__device__ Joined join_parts(const Partial (&parts)[kWarps], int slot, int lane, float sink) {
  const int head = lane / 4;
  Joined joined{.out = {}, .max = sink, .sum = 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) joined.max = fmaxf(joined.max, parts[w].max[head]);
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const float factor = ptx::exp2_approx(parts[w].max[head] - joined.max);
    joined.sum = fmaf(parts[w].sum[head], factor, joined.sum);
    add_scaled(joined.out, parts[w].out[slot][lane], factor);
  }
  return joined;
}

/// Loads query heads as the left operand; bf16 keys come by ldmatrix in its order, fp8 keys as 16
/// neighbouring dims to a lane, so that dim 16 (lane % 4) + 4 step + i is what the lane multiplies.
template <KvFormat kFormat>
__device__ void load_q(std::uint32_t (&q)[kDimSteps][4], const __nv_bfloat16* row, bool has_head,
                       int lane) {
#pragma unroll
  for (int step = 0; step < kDimSteps; ++step) {
    const int low = kFormat == KvFormat::bf16 ? step * 16 + lane % 4 * 2 : lane % 4 * 16 + step * 4;
    const int high = kFormat == KvFormat::bf16 ? low + 8 : low + 2;
    q[step][0] = has_head ? *reinterpret_cast<const std::uint32_t*>(row + low) : 0;
    q[step][1] = 0;
    q[step][2] = has_head ? *reinterpret_cast<const std::uint32_t*>(row + high) : 0;
    q[step][3] = 0;
  }
}

__device__ void multiply_keys(float (&s)[2][4], const std::uint32_t (&q)[kDimSteps][4],
                              const Piece<KvFormat::bf16>& piece, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, piece.k + swizzled(n * 8 + lane % 8, 4 * half + lane / 8));
      ptx::mma_m16n8k16_bf16(s[n], q[2 * half], {b[0], b[1]});
      ptx::mma_m16n8k16_bf16(s[n], q[2 * half + 1], {b[2], b[3]});
    }
  }
}

__device__ void multiply_keys(float (&s)[2][4], const std::uint32_t (&q)[kDimSteps][4],
                              const Piece<KvFormat::fp8>& piece, int lane) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const uint4 row = piece.k[fp8_place(n * 8 + lane / 4, lane % 4)];
    const std::uint32_t words[kDimSteps] = {row.x, row.y, row.z, row.w};
#pragma unroll
    for (int step = 0; step < kDimSteps; ++step) {
      ptx::mma_m16n8k16_bf16(s[n], q[step],
                             {fp8_low_to_bf16(words[step]), fp8_high_to_bf16(words[step])});
    }
    const float2 scale = *reinterpret_cast<const float2*>(piece.k_scale + n * 8 + lane % 4 * 2);
    s[n][0] *= scale.x, s[n][1] *= scale.y;
  }
}

__device__ void multiply_values(float (&out)[kDimBlocks][4], const float (&s)[2][4],
                                const Piece<KvFormat::bf16>& piece, int lane) {
  const std::uint32_t p[4] = {pack_bf16(s[0][0], s[0][1]), 0, pack_bf16(s[1][0], s[1][1]), 0};
#pragma unroll
  for (int n = 0; n < kDimBlocks; n += 2) {
    std::uint32_t b[4];
    ptx::ldmatrix_x4_trans(b, piece.v + swizzled(lane % 16, n + lane / 16));
    ptx::mma_m16n8k16_bf16(out[n], p, {b[0], b[1]});
    ptx::mma_m16n8k16_bf16(out[n + 1], p, {b[2], b[3]});
  }
}

/// Column c of block n is dim 8c + n: a lane reads eight neighbouring dims of its four tokens, and
/// block n takes byte n of each.
__device__ void multiply_values(float (&out)[kDimBlocks][4], const float (&s)[2][4],
                                const Piece<KvFormat::fp8>& piece, int lane) {
  std::uint32_t p[4] = {};
  std::uint32_t words[2][2][2];  // [block of tokens][token of a pair][dims 0 to 3, 4 to 7]
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int token = half * 8 + lane % 4 * 2;
    const float2 scale = *reinterpret_cast<const float2*>(piece.v_scale + token);
    p[2 * half] = pack_bf16(s[half][0] * scale.x, s[half][1] * scale.y);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4* const chunk = piece.v + fp8_place(token + i, lane / 8);
      const uint2 eight = reinterpret_cast<const uint2*>(chunk)[lane / 4 % 2];
      words[half][i][0] = eight.x, words[half][i][1] = eight.y;
    }
  }
#pragma unroll
  for (int n = 0; n < kDimBlocks; ++n) {
    // Byte n % 4 of the pair's words, to the high byte of either half; what lies below is dropped.
    const unsigned pick = n % 4 * 0x1010 + 0x4000;
    std::uint32_t b[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      b[half] = fp8_pair_to_bf16(__byte_perm(words[half][0][n / 4], words[half][1][n / 4], pick));
    }
    ptx::mma_m16n8k16_bf16(out[n], p, b);
  }
}

/// Two pairs of neighbouring dims, the first dim of each.
struct SlotDims {
  std::uint32_t pair[2];
  int dim[2];
};
template <KvFormat kFormat>
__device__ SlotDims slot_dims(const float4& x, int slot, int lane) {
  if constexpr (kFormat == KvFormat::bf16) {
    const int dim = slot * 16 + lane % 4 * 2;
    return {.pair = {pack_bf16(x.x, x.y), pack_bf16(x.z, x.w)}, .dim = {dim, dim + 8}};
  } else {
    const int dim = lane % 4 * 16 + slot * 2;
    return {.pair = {pack_bf16(x.x, x.z), pack_bf16(x.y, x.w)}, .dim = {dim, dim + 8}};
  }
}

struct Params {
  Attention attention;
  DecodeSplit split;
  int group;
};

template <KvFormat kFormat>
__global__ void __launch_bounds__(kThreads, 2) attend(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& smem = *reinterpret_cast<Smem<kFormat>*>(memory);
  constexpr int kStages = Piece<kFormat>::kStages;
  const Attention& a = p.attention;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int split = static_cast<int>(blockIdx.x), kv_head = static_cast<int>(blockIdx.y);
  const int sequence = static_cast<int>(blockIdx.z), kv_heads = a.cache.num_kv_heads;
  const int first_head = kv_head * p.group, head = lane / 4;
  const bool has_head = head < p.group;
  const float sink = has_head ? sink_logit(a.sinks[first_head + head]) : kLowest;

  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int length = a.batch.context[sequence] + 1;
  const int split_positions = p.split.pages_per_split * kPageTokens;
  const bool slides = a.window > 0;
  const int num_splits = slides ? 1 : (length + split_positions - 1) / split_positions;
  if (split >= num_splits) return;
  const int begin = slides ? max(length - a.window, 0) : split * split_positions;
  const int end = slides ? length : min(length, begin + split_positions);
  const int first_piece = begin / kPieceTokens + warp;
  const int num_pieces = ((end - 1) / kPieceTokens - first_piece + kWarps) / kWarps;

  std::uint32_t q[kDimSteps][4];
  const std::int64_t q_row = std::int64_t{sequence} * a.num_heads + first_head + head;
  load_q<kFormat>(q, a.q + q_row * kHeadDim, has_head, lane);

  int pages = 0;  // lane i holds the page of piece i, of the 32 being fetched
  const auto fetch = [&](int i) {
    if (i >= num_pieces) return;
    if (i % 32 == 0 && i + lane < num_pieces) {
      pages = a.batch.table[std::int64_t{sequence} * a.batch.table_stride +
                            (first_piece + (i + lane) * kWarps) / kPiecesPerPage];
    }
    const int page = __shfl_sync(0xFFFFFFFF, pages, i % 32), piece = first_piece + i * kWarps;
    const int rows = page < 0 ? 0 : end - piece * kPieceTokens;  // later ones may hold anything
    const std::int64_t first =
        kv_row(kv_heads, max(page, 0), kv_head, piece % kPiecesPerPage * kPieceTokens);
    Piece<kFormat>& to = smem.ring[warp][i % kStages];
    const auto copy_rows = [&](uint4* tile, const void* from, int row_chunks, auto&& place) {
      const uint4* const source = static_cast<const uint4*>(from) + first * row_chunks + lane;
#pragma unroll
      for (int c = 0; c < kPieceTokens * row_chunks; c += 32) {
        const int row = (c + lane) / row_chunks;
        ptx::cp_async_16(tile + place(row, (c + lane) % row_chunks), source + c,
                         row < rows ? 16 : 0);
      }
    };
    if constexpr (kFormat == KvFormat::bf16) {
      const auto place = [](int row, int chunk) { return swizzled(row, chunk); };
      copy_rows(to.k, a.cache.k, kRowChunks, place);
      copy_rows(to.v, a.cache.v, kRowChunks, place);
    } else {
      const auto place = [](int row, int chunk) { return fp8_place(row, chunk); };
      copy_rows(to.k, a.cache.k, kFp8RowChunks, place);
      copy_rows(to.v, a.cache.v, kFp8RowChunks, place);
      const int row = lane % kPieceTokens;
      const bool is_k = lane < kPieceTokens;
      ptx::cp_async_4((is_k ? to.k_scale : to.v_scale) + row,
                      (is_k ? a.cache.k_scale : a.cache.v_scale) + first + row, row < rows ? 4 : 0);
    }
  };

  float max = kLowest, sum = 0;
  float out[kDimBlocks][4] = {};
  const auto visit = [&](int i) {
    const Piece<kFormat>& piece = smem.ring[warp][i % kStages];
    float s[2][4] = {};
    multiply_keys(s, q, piece, lane);
    const int key = (first_piece + i * kWarps) * kPieceTokens + lane % 4 * 2;
    float new_max = max;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int position = key + n * 8 + j;
        s[n][j] = position >= begin && position < end ? s[n][j] * kScoreScale : kHidden;
        new_max = fmaxf(new_max, s[n][j]);
      }
    }
    new_max = fmaxf(new_max, __shfl_xor_sync(0xFFFFFFFF, new_max, 1));
    new_max = fmaxf(new_max, __shfl_xor_sync(0xFFFFFFFF, new_max, 2));
    const float shrink = ptx::exp2_approx(max - new_max);
    max = new_max;
    sum *= shrink;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        s[n][j] = ptx::exp2_approx(s[n][j] - max);
        sum += s[n][j];
      }
    }
#pragma unroll
    for (int n = 0; n < kDimBlocks; ++n) out[n][0] *= shrink, out[n][1] *= shrink;
    multiply_values(out, s, piece, lane);
  };

#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    fetch(i);
    ptx::cp_async_commit_group();
  }
  for (int i = 0; i < num_pieces; ++i) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncwarp();  // every lane's copies are there, and every lane has left the piece before
    fetch(i + kStages - 1);
    ptx::cp_async_commit_group();
    visit(i);
  }

  sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
  sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
  State state{.max = max, .sum = sum};
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    state.out[i] = make_float4(out[2 * i][0], out[2 * i][1], out[2 * i + 1][0], out[2 * i + 1][1]);
  }

  const auto write_out = [&] {
    if (warp >= kSlots || !has_head) return;
    Joined joined = join_parts(smem.parts, warp, lane, sink);
    joined.sum += ptx::exp2_approx(sink - joined.max);
    scale_by(joined.out, 1.0f / joined.sum);
    const SlotDims dims = slot_dims<kFormat>(joined.out, warp, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      *reinterpret_cast<std::uint32_t*>(a.out + q_row * kHeadDim + dims.dim[i]) = dims.pair[i];
    }
  };

  __syncthreads();  // all rings are free
  store_part(smem.parts[warp], state, lane);
  __syncthreads();
  if (num_splits == 1) {
    write_out();
    return;
  }

  const std::int64_t pair = std::int64_t{sequence} * kv_heads + kv_head;
  Partial* const parts = static_cast<Partial*>(p.split.partials) + pair * gridDim.x;
  if (warp < kSlots) {
    const Joined joined = join_parts(smem.parts, warp, lane, kLowest);
    parts[split].out[warp][lane] = joined.out;
    if (warp == 0 && lane % 4 == 0) {
      parts[split].max[head] = joined.max, parts[split].sum[head] = joined.sum;
    }
    __threadfence();
  }
  __syncthreads();
  if (thread == 0) {
    smem.is_last = atomicAdd(p.split.arrived + pair, 1u) == static_cast<unsigned>(num_splits - 1);
    if (smem.is_last) p.split.arrived[pair] = 0;
  }
  __syncthreads();
  if (!smem.is_last) return;
  __threadfence();

  state = State{};
#pragma unroll 4
  for (int i = warp; i < num_splits; i += kWarps) {
    const float other = __ldcg(parts[i].max + head), joined_max = fmaxf(state.max, other);
    const float shrink = ptx::exp2_approx(state.max - joined_max);
    const float factor = ptx::exp2_approx(other - joined_max);
    state.max = joined_max;
    state.sum = fmaf(__ldcg(parts[i].sum + head), factor, state.sum * shrink);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      scale_by(state.out[slot], shrink);
      add_scaled(state.out[slot], __ldcg(&parts[i].out[slot][lane]), factor);
    }
  }
  store_part(smem.parts[warp], state, lane);
  __syncthreads();
  write_out();
}

template <KvFormat kFormat>
void launch_splits(const Params& params, const Shape& grid, const Launch& how) {
  Shape shape = grid;
  shape.shared_bytes = sizeof(Smem<kFormat>);
  cuda_check(cudaFuncSetAttribute(attend<kFormat>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shape.shared_bytes)));
  launch(attend<kFormat>, shape, how, params);
}

}  // namespace

void decode_attention(const Attention& attention, const DecodeSplit& split, const Launch& how) {
  const int group = checked_group(attention);
  const AttentionBatch& batch = attention.batch;
  if (batch.num_sequences == 0) return;
  check(batch.num_tokens == batch.num_sequences, "decode_attention: one token per sequence");
  check(split.pages_per_split > 0, "decode_attention: a split has at least one page");
  const int splits = decode_splits({.max_context = batch.max_context, .window = attention.window},
                                   split.pages_per_split);
  check(splits == 1 || (split.partials && split.arrived), "decode_attention: no workspace");
  const Shape shape{.grid = dim3(static_cast<unsigned>(splits),
                                 static_cast<unsigned>(attention.cache.num_kv_heads),
                                 static_cast<unsigned>(batch.num_sequences)),
                    .block = dim3(kThreads)};
  const Params params{.attention = attention, .split = split, .group = group};
  if (attention.cache.format == KvFormat::bf16) {
    launch_splits<KvFormat::bf16>(params, shape, how);
  } else {
    launch_splits<KvFormat::fp8>(params, shape, how);
  }
}

}  // namespace gauntlet::kernels::cuda
