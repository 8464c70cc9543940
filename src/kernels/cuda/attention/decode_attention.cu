// Eight warps each walk pieces of 16 positions with a ring of their own, no barrier between them;
// the query heads of a KV head are the rows of one tensor-core tile.
#include <cuda_bf16.h>

#include <type_traits>

#include "kernels/cuda/attention/decode_attention.h"
#include "kernels/cuda/attention/decode_piece.cuh"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/exp2.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline attention {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPiecesPerPage = kPageTokens / kPieceTokens;
constexpr int kSlots = kDimBlocks / 2;  // of four sums of a lane

/// Pieces of a warp under way at once.
constexpr int num_stages(KvFormat format, DecodeRing ring) {
  if (ring == DecodeRing::deep) return kMinPagesPerSplit * kPiecesPerPage / kWarps;
  return format == KvFormat::bf16 ? 3 : 4;
}
static_assert(num_stages(KvFormat::bf16, DecodeRing::shallow) * kWarps * kPieceTokens ==
              kShallowRingPositions);

/// Softmax over some of a sequence's positions, not yet divided: sums relative to 2^max.
struct Partial {
  float4 out[kSlots][32];  // in the order of the accumulators of a warp
  float max[kMaxGroup];
  float sum[kMaxGroup];
};
static_assert(sizeof(Partial) == kDecodePartialBytes);

template <KvFormat kFormat, DecodeRing kRing>
struct Smem {
  union {
    Piece<kFormat> ring[num_stages(kFormat, kRing)];
    Partial part;  // when the walk is over
  } warps[kWarps];
  uint4 q[kMaxGroup * kRowChunks];
  bool is_last;
};

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
template <class Memory>
__device__ Joined join_parts(const Memory (&warps)[kWarps], int slot, int lane, float sink) {
  const int head = lane / 4;
  Joined joined{.out = {}, .max = sink, .sum = 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) joined.max = fmaxf(joined.max, warps[w].part.max[head]);
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const Partial& part = warps[w].part;
    const float factor = ptx::exp2_approx(part.max[head] - joined.max);
    joined.sum = fmaf(part.sum[head], factor, joined.sum);
    add_scaled(joined.out, part.out[slot][lane], factor);
  }
  return joined;
}

/// A lane's part of a row in the cache.
template <KvFormat kFormat>
using RowPart = std::conditional_t<kFormat == KvFormat::bf16, Bf16Quads, Fp8Quads>;

/// Where the new tokens' queries, keys and values are: rotated and stored, or as the product left
/// them.
enum class Source { stored, product };

struct Params {
  Attention attention;
  NewTokens tokens;  // of Source::product
  DecodeSplit split;
  int group;
};

template <KvFormat kFormat, Source kSource, DecodeRing kRing>
__global__ void __launch_bounds__(kThreads, 2) attend(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& smem = *reinterpret_cast<Smem<kFormat, kRing>*>(memory);
  constexpr int kStages = num_stages(kFormat, kRing);
  const Attention& a = p.attention;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int split = static_cast<int>(blockIdx.x), kv_head = static_cast<int>(blockIdx.y);
  const int sequence = static_cast<int>(blockIdx.z), kv_heads = a.cache.num_kv_heads;
  const int first_head = kv_head * p.group, head = lane / 4;
  const bool has_head = head < p.group;
  const float sink = has_head ? sink_logit(a.sinks[first_head + head]) : kLowest;

  // The kernel in front let this one start after its own wait: what was written before it is here,
  // and only its product must be waited for.
  const auto wait = [] {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  };
  if constexpr (kSource == Source::stored) wait();
  const int newest = __ldcg(a.batch.context + sequence), length = newest + 1;
  const std::int32_t* const table = a.batch.table + std::int64_t{sequence} * a.batch.table_stride;
  const int split_positions = p.split.pages_per_split * kPageTokens;
  const bool slides = a.window > 0;
  const int num_splits = slides ? 1 : (length + split_positions - 1) / split_positions;
  if (split >= num_splits) return;  // the first split is always there, and waits
  const int begin = slides ? max(length - a.window, 0) : split * split_positions;
  const int end = slides ? length : min(length, begin + split_positions);
  const int first_piece = begin / kPieceTokens + warp;
  const int num_pieces = ((end - 1) / kPieceTokens - first_piece + kWarps) / kWarps;

  // Eight lanes bring a row of the new token: those of k and v by the warp that walks over the
  // newest position, those of q by the two warps after it.
  const int turn =
      (warp + kWarps - (newest / kPieceTokens - begin / kPieceTokens) % kWarps) % kWarps;
  const int head_lane = lane % kHeadLanes, row_of_warp = lane / kHeadLanes;
  const bool brings_q = turn == 1 || turn == 2;
  const bool has_newest = kSource == Source::product && end == length;
  const bool brings_kv = has_newest && turn == 0;
  Factors factors{};
  int newest_page = -1;
  if constexpr (kSource == Source::product) {
    if (brings_q || brings_kv) {
      factors = load_factors(p.tokens.rope + std::int64_t{newest} * kHalfHead + 4 * head_lane);
    }
    if (brings_kv) newest_page = __ldcg(table + newest / kPageTokens);
  }

  int pages = 0;  // lane i holds the page of piece i, of the 32 being fetched
  const auto fetch = [&](int i) {
    if (i >= num_pieces) return;
    if (i % 32 == 0 && i + lane < num_pieces) {
      pages = __ldcg(table + (first_piece + (i + lane) * kWarps) / kPiecesPerPage);
    }
    const int page = __shfl_sync(0xFFFFFFFF, pages, i % 32), piece = first_piece + i * kWarps;
    // Rows after them may hold anything, and the newest is put into the piece when it is there.
    const int rows = page < 0 ? 0 : (has_newest ? newest : end) - piece * kPieceTokens;
    const std::int64_t first =
        kv_row(kv_heads, max(page, 0), kv_head, piece % kPiecesPerPage * kPieceTokens);
    Piece<kFormat>& to = smem.warps[warp].ring[i % kStages];
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
      constexpr int kScaleLanes = kPieceTokens / 4;
      const int row = lane % kScaleLanes * 4;
      const bool is_k = lane < kScaleLanes;
      if (lane < 2 * kScaleLanes) {
        ptx::cp_async_16((is_k ? to.k_scale : to.v_scale) + row,
                         (is_k ? a.cache.k_scale : a.cache.v_scale) + first + row,
                         4 * min(max(rows - row, 0), 4));
      }
    }
  };
#pragma unroll
  for (int i = 0; i < kStages; ++i) {
    fetch(i);
    ptx::cp_async_commit_group();
  }

  const auto bring_q = [&] {
    const int row = (turn - 1) * (32 / kHeadLanes) + row_of_warp, q_head = first_head + row;
    if constexpr (kSource == Source::product) {
      const float* const qkv = p.tokens.qkv + sequence * p.tokens.qkv_stride;
      Quads x{};
      if (row < p.group) x = rotate(load_quads(qkv + q_head * kHeadDim, head_lane), factors);
      put_row(smem.q, row, head_lane, to_bf16(x));
    } else {
      const std::int64_t first = (std::int64_t{sequence} * a.num_heads + q_head) * kHeadDim;
      uint4 chunk{};
      if (row < p.group) chunk = reinterpret_cast<const uint4*>(a.q + first)[head_lane];
      smem.q[swizzled(row, head_lane)] = chunk;
    }
  };

  RowPart<kFormat> newest_row{};
  const auto bring_kv = [&] {
    if (row_of_warp >= 2) return;
    const RowKind kind = row_of_warp == 0 ? RowKind::key : RowKind::value;
    const int row = a.num_heads + row_of_warp * kv_heads + kv_head;
    Quads x = load_quads(p.tokens.qkv + sequence * p.tokens.qkv_stride + row * kHeadDim, head_lane);
    if (kind == RowKind::key) x = rotate(x, factors);
    if constexpr (kFormat == KvFormat::bf16) {
      newest_row = to_bf16(x);
    } else {
      newest_row = to_fp8(x);
    }
    if (newest_page < 0) return;
    const std::int64_t to = kv_row(kv_heads, newest_page, kv_head, newest % kPageTokens);
    store_row(cache_row(a.cache, kind, to), head_lane, newest_row);
  };

  if constexpr (kSource == Source::product) wait();
  if (brings_q) bring_q();
  if (brings_kv) bring_kv();
  __syncthreads();  // q is there
  std::uint32_t q[kDimSteps][4];
  read_q<kFormat>(q, smem.q, lane);

  float max = kLowest, sum = 0;
  float out[kDimBlocks][4] = {};
  const auto visit = [&](int i) {
    const Piece<kFormat>& piece = smem.warps[warp].ring[i % kStages];
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
    float added = 0;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        s[n][j] = ptx::exp2_approx(s[n][j] - max);
        added += s[n][j];
      }
    }
    sum = fmaf(sum, shrink, added);
#pragma unroll
    for (int n = 0; n < kDimBlocks; ++n) out[n][0] *= shrink, out[n][1] *= shrink;
    multiply_values(out, s, piece, lane);
  };

  for (int i = 0; i < num_pieces; ++i) {
    ptx::cp_async_wait_group<kStages - 1>();
    __syncwarp();  // every lane's copies are there
    if (brings_kv && i == num_pieces - 1) {
      if (row_of_warp < 2) {
        put_position(smem.warps[warp].ring[i % kStages], newest % kPieceTokens, lane, newest_row);
      }
      __syncwarp();
    }
    visit(i);
    __syncwarp();  // every lane has left the piece
    fetch(i + kStages);
    ptx::cp_async_commit_group();
  }

  sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
  sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
  State state{.max = max, .sum = sum};
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    state.out[i] = make_float4(out[2 * i][0], out[2 * i][1], out[2 * i + 1][0], out[2 * i + 1][1]);
  }

  const std::int64_t out_row = std::int64_t{sequence} * a.num_heads + first_head + head;
  const auto write_out = [&] {
    if (warp >= kSlots || !has_head) return;
    Joined joined = join_parts(smem.warps, warp, lane, sink);
    joined.sum += ptx::exp2_approx(sink - joined.max);
    scale_by(joined.out, 1.0f / joined.sum);
    const SlotDims dims = slot_dims<kFormat>(joined.out, warp, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      *reinterpret_cast<std::uint32_t*>(a.out + out_row * kHeadDim + dims.dim[i]) = dims.pair[i];
    }
  };

  store_part(smem.warps[warp].part, state, lane);
  __syncthreads();
  if (num_splits == 1) {
    write_out();
    return;
  }

  const std::int64_t pair = std::int64_t{sequence} * kv_heads + kv_head;
  Partial* const parts = static_cast<Partial*>(p.split.partials) + pair * gridDim.x;
  if (warp < kSlots) {
    const Joined joined = join_parts(smem.warps, warp, lane, kLowest);
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
  store_part(smem.warps[warp].part, state, lane);
  __syncthreads();
  write_out();
}

template <KvFormat kFormat, Source kSource, DecodeRing kRing>
void launch_ring(const Params& params, const Shape& grid, const Launch& how) {
  constexpr auto kernel = attend<kFormat, kSource, kRing>;
  Shape shape = grid;
  shape.shared_bytes = sizeof(Smem<kFormat, kRing>);
  allow_shared_memory<kernel>();
  launch(kernel, shape, how, params);
}

template <KvFormat kFormat, Source kSource>
void launch_format(const Params& params, const Shape& grid, DecodeRing ring, const Launch& how) {
  if (ring == DecodeRing::deep &&
      sizeof(Smem<kFormat, DecodeRing::deep>) <= device_facts().most_shared_bytes) {
    return launch_ring<kFormat, kSource, DecodeRing::deep>(params, grid, how);
  }
  launch_ring<kFormat, kSource, DecodeRing::shallow>(params, grid, how);
}

template <Source kSource>
void launch_splits(Params params, const Launch& how) {
  const Attention& attention = params.attention;
  const AttentionBatch& batch = attention.batch;
  params.group = checked_group(attention);
  if (batch.num_sequences == 0) return;
  check(batch.num_tokens == batch.num_sequences, "decode_attention: one token per sequence");
  const int pages = params.split.pages_per_split;
  check(pages > 0, "decode_attention: a split has at least one page");
  const DecodeShape shape{.num_sequences = batch.num_sequences,
                          .num_kv_heads = attention.cache.num_kv_heads,
                          .max_context = batch.max_context,
                          .window = attention.window,
                          .num_sms = device_facts().num_sms};
  const int splits = decode_splits(shape, pages);
  check(splits == 1 || (params.split.partials && params.split.arrived),
        "decode_attention: no workspace");
  const Shape grid{
      .grid = dim3(static_cast<unsigned>(splits), static_cast<unsigned>(shape.num_kv_heads),
                   static_cast<unsigned>(shape.num_sequences)),
      .block = dim3(kThreads)};
  const DecodeRing ring = choose_decode_ring(shape, pages);
  if (attention.cache.format == KvFormat::bf16) {
    launch_format<KvFormat::bf16, kSource>(params, grid, ring, how);
  } else {
    launch_format<KvFormat::fp8, kSource>(params, grid, ring, how);
  }
}

}  // namespace

void decode_attention(const Attention& attention, const DecodeSplit& split, const Launch& how) {
  launch_splits<Source::stored>({.attention = attention, .split = split}, how);
}

void rope_decode_attention(const Attention& attention, const NewTokens& tokens,
                           const DecodeSplit& split, const Launch& how) {
  check(tokens.qkv_stride % 4 == 0,
        "rope_decode_attention: rows of q, k, v are not 16 bytes aligned");
  launch_splits<Source::product>({.attention = attention, .tokens = tokens, .split = split}, how);
}

}  // namespace gauntlet::kernels::cuda::inline attention
