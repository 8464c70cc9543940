// A block for each query token and head in all three kernels; reads of keys and values are
// coalesced, 16 bytes (bf16) or 8 (fp8) to a lane.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/naive_attention.h"
#include "kernels/cuda/launch.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline attention {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kLanes = 8;  // of a row of 64 dims
constexpr int kDims = kHeadDim / kLanes;
constexpr int kRows = kThreads / kLanes;  // of keys or values that a block reads at once
static_assert(kDims == 8);

struct Params {
  Attention attention;
  float* scores;  // [rows, heads, max_context]
  int first_row;
};

/// The query of a block and the keys it sees.
struct Query {
  int token, head, kv_head;
  int begin, end;
  const std::int32_t* table;
  float* scores;  // by position
};

__device__ Query find_query(const Params& p) {
  const Attention& a = p.attention;
  const int row = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int token = p.first_row + row;
  const int sequence = a.batch.token_sequence[token];
  const int position = a.batch.context[sequence] + token - a.batch.first_token[sequence];
  return {.token = token,
          .head = head,
          .kv_head = head / (a.num_heads / a.cache.num_kv_heads),
          .begin = a.window > 0 ? max(position + 1 - a.window, 0) : 0,
          .end = position + 1,
          .table = a.batch.table + std::int64_t{sequence} * a.batch.table_stride,
          .scores = p.scores + (std::int64_t{row} * a.num_heads + head) * a.batch.max_context};
}

struct Eight {
  float x[kDims];
};

__device__ Eight load_bf16(const void* rows, std::int64_t row, int lane) {
  const uint4 words = static_cast<const uint4*>(rows)[row * kLanes + lane];
  const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(&words);
  Eight eight;
#pragma unroll
  for (int i = 0; i < kDims / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    eight.x[2 * i] = pair.x, eight.x[2 * i + 1] = pair.y;
  }
  return eight;
}

__device__ Eight load_fp8(const void* rows, const float* scales, std::int64_t row, int lane) {
  const uint2 words = static_cast<const uint2*>(rows)[row * kLanes + lane];
  const auto* const bytes = reinterpret_cast<const __nv_fp8_e4m3*>(&words);
  Eight eight;
#pragma unroll
  for (int i = 0; i < kDims; ++i) eight.x[i] = static_cast<float>(bytes[i]) * scales[row];
  return eight;
}

enum class Which { k, v };

template <KvFormat kFormat, Which kWhich>
__device__ Eight load_row(const KvCache& cache, const Query& query, int position, int lane) {
  const int page = max(query.table[position / kPageTokens], 0);  // padding may have none
  const std::int64_t row = kv_row(cache.num_kv_heads, page, query.kv_head, position % kPageTokens);
  const void* const rows = kWhich == Which::k ? cache.k : cache.v;
  if constexpr (kFormat == KvFormat::bf16) {
    return load_bf16(rows, row, lane);
  } else {
    return load_fp8(rows, kWhich == Which::k ? cache.k_scale : cache.v_scale, row, lane);
  }
}

template <KvFormat kFormat>
__global__ void __launch_bounds__(kThreads) score(const __grid_constant__ Params p) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const Query query = find_query(p);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const unsigned row_lanes = 0xFFu << (threadIdx.x & (32 - kLanes));
  const Eight q = load_bf16(p.attention.q,
                            std::int64_t{query.token} * p.attention.num_heads + query.head, lane);
  for (int i = query.begin + static_cast<int>(threadIdx.x) / kLanes; i < query.end; i += kRows) {
    const Eight k = load_row<kFormat, Which::k>(p.attention.cache, query, i, lane);
    float sum = 0;
#pragma unroll
    for (int d = 0; d < kDims; ++d) sum = fmaf(q.x[d], k.x[d], sum);
#pragma unroll
    for (int step = 1; step < kLanes; step *= 2) sum += __shfl_xor_sync(row_lanes, sum, step);
    if (lane == 0) query.scores[i] = sum * 0.125f;
  }
}

/// The same value in every thread.
template <typename Combine>
__device__ float across_block(float value, float (&shared)[kWarps], Combine&& combine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFF, value, step));
  }
  __syncthreads();  // `shared` may still be read from the last time
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) value = combine(value, shared[w]);
  return value;
}

__global__ void __launch_bounds__(kThreads) normalise(const __grid_constant__ Params p) {
  __shared__ float shared[kWarps];
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const Query query = find_query(p);
  const float sink = p.attention.sinks[query.head];
  const int first = query.begin + static_cast<int>(threadIdx.x);
  float max = sink;
  for (int i = first; i < query.end; i += kThreads) max = fmaxf(max, query.scores[i]);
  max = across_block(max, shared, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int i = first; i < query.end; i += kThreads) {
    const float weight = expf(query.scores[i] - max);
    query.scores[i] = weight;
    sum += weight;
  }
  sum = across_block(sum, shared, [](float a, float b) { return a + b; }) + expf(sink - max);
  for (int i = first; i < query.end; i += kThreads) query.scores[i] /= sum;
}

template <KvFormat kFormat>
__global__ void __launch_bounds__(kThreads) weigh(const __grid_constant__ Params p) {
  __shared__ float sums[kRows][kHeadDim];
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const Query query = find_query(p);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, row = thread / kLanes;
  Eight sum{};
  for (int i = query.begin + row; i < query.end; i += kRows) {
    const Eight v = load_row<kFormat, Which::v>(p.attention.cache, query, i, lane);
    const float weight = query.scores[i];
#pragma unroll
    for (int d = 0; d < kDims; ++d) sum.x[d] = fmaf(weight, v.x[d], sum.x[d]);
  }
#pragma unroll
  for (int d = 0; d < kDims; ++d) sums[row][lane * kDims + d] = sum.x[d];
  __syncthreads();
  if (thread >= kHeadDim) return;
  float total = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) total += sums[r][thread];
  const std::int64_t to = std::int64_t{query.token} * p.attention.num_heads + query.head;
  p.attention.out[to * kHeadDim + thread] = __float2bfloat16_rn(total);
}

template <KvFormat kFormat>
void launch_pieces(const Attention& attention, const NaiveWorkspace& workspace, int rows,
                   const Launch& how) {
  const int tokens = attention.batch.num_tokens;
  for (int first = 0; first < tokens; first += rows) {
    const Params params{.attention = attention, .scores = workspace.scores, .first_row = first};
    const Shape shape{.grid = dim3(static_cast<unsigned>(std::min(rows, tokens - first)),
                                   static_cast<unsigned>(attention.num_heads)),
                      .block = dim3(kThreads)};
    launch(score<kFormat>, shape, how, params);
    launch(normalise, shape, how, params);
    launch(weigh<kFormat>, shape, how, params);
  }
}

}  // namespace

void naive_attention(const Attention& attention, const NaiveWorkspace& workspace,
                     const Launch& how) {
  checked_group(attention);
  if (attention.batch.num_tokens == 0) return;
  const int rows = naive_rows(attention, workspace.bytes);
  check(rows > 0, "naive_attention: the workspace holds no row of scores");
  if (attention.cache.format == KvFormat::bf16) {
    launch_pieces<KvFormat::bf16>(attention, workspace, rows, how);
  } else {
    launch_pieces<KvFormat::fp8>(attention, workspace, rows, how);
  }
}

}  // namespace gauntlet::kernels::cuda::inline attention
