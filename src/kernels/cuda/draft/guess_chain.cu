// A cluster of blocks divides the rows of each matrix; vectors pass between blocks through L2, with
// a barrier of the cluster behind each product. Norms and sums of few numbers every block makes for
// itself. Rounded to bf16 where the kernels of the engine round.
#include <climits>

#include "core/check.h"
#include "kernels/cuda/attention/rope_kv.cuh"
#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/draft/guess_chain.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sampling/cluster_row.cuh"
#include "kernels/cuda/sampling/sample.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline draft {
namespace {

constexpr int kChainThreads = 512;
constexpr int kChainWarps = kChainThreads / 32;
constexpr int kRowsAtOnce = 8;  // of a warp: as many loads under way
static_assert(kWidestChain <= kChainThreads, "a thread has one number of a row");
static_assert(kMostChainCols >= kChainWarps * kHeadDim, "sums of attention lie where inputs do");

struct Likeliest {
  float logit;
  std::int32_t id;

  __device__ __forceinline__ void see(float other, std::int32_t other_id) {
    if (other > logit || (other == logit && other_id < id)) {
      logit = other;
      id = other_id;
    }
  }
};

struct ChainShared {
  float x[kMostChainCols];  // what a product reads
  float residual[kWidestChain];
  float scores[kMostChainContext];
  float q[kHeadDim], k[kHeadDim], v[kHeadDim];  // of the newest position
  float sums[2][kChainWarps];
  float tops[kChainWarps];
  Likeliest likeliest[kChainWarps];
};

/// Where blocks leave what others read.
struct Exchange {
  float *qkv, *attended, *o, *gate_up, *down, *likeliest;

  __device__ explicit Exchange(const GuessChain& work) {
    const GuessChainShape& shape = work.shape;
    qkv = work.scratch;
    attended = qkv + shape.qkv_rows();
    o = attended + shape.width();
    gate_up = o + shape.hidden;
    down = gate_up + 2 * shape.intermediate;
    likeliest = down + shape.hidden;
  }
};

__device__ __forceinline__ float rounded(float value) {
  return __bfloat162float(__float2bfloat16(value));
}

__device__ __forceinline__ float dot(uint4 weights, float4 low, float4 high) {
  const float2 a = unpack_bf16(weights.x), b = unpack_bf16(weights.y), c = unpack_bf16(weights.z),
               d = unpack_bf16(weights.w);
  return a.x * low.x + a.y * low.y + b.x * low.z + b.y * low.w + c.x * high.x + c.y * high.y +
         d.x * high.z + d.y * high.w;
}

/// put(row, sum) by the first lane of the warp that has the row.
template <class Put>
__device__ __forceinline__ void multiply(const __nv_bfloat16* weights, int rows, int cols,
                                         const float* x, Put&& put) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(blockIdx.x) * kChainWarps + static_cast<int>(threadIdx.x) / 32;
  constexpr int kStride = kRowBlocks * kChainWarps;
  const int eights = cols / 8;
  const auto* from = reinterpret_cast<const uint4*>(weights);
  const auto* fours = reinterpret_cast<const float4*>(x);
  for (int first = warp; first < rows; first += kRowsAtOnce * kStride) {
    float sums[kRowsAtOnce] = {};
    for (int c = lane; c < eights; c += 32) {
      uint4 w[kRowsAtOnce];
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const int row = first + r * kStride;
        w[r] = row < rows ? __ldg(from + static_cast<std::int64_t>(row) * eights + c) : uint4{};
      }
      const float4 low = fours[2 * c], high = fours[2 * c + 1];
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) sums[r] += dot(w[r], low, high);
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const int row = first + r * kStride;
      const float sum = warp_sum(sums[r]);
      if (row < rows && lane == 0) put(row, sum);
    }
  }
}

/// Every thread gets the largest.
__device__ __forceinline__ float block_top(float value, float* tops) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFF, value, offset));
  }
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = value;
  __syncthreads();
  float top = tops[0];
#pragma unroll
  for (int warp = 1; warp < kChainWarps; ++warp) top = fmaxf(top, tops[warp]);
  return top;
}

__device__ __forceinline__ float norm_scale(float squares, const GuessChain& work) {
  return 1.0f / sqrtf(squares / static_cast<float>(work.shape.hidden) + work.epsilon);
}

/// The norm of the residual to x.
__device__ __forceinline__ void norm_residual(const GuessChain& work, const float* weight,
                                              ChainShared& shared) {
  const int i = static_cast<int>(threadIdx.x);
  const bool is_inside = i < work.shape.hidden;
  const float own = is_inside ? shared.residual[i] : 0;
  const float scale = norm_scale(block_sum<kChainThreads>(own * own, shared.sums[0]), work);
  if (is_inside) shared.x[i] = rounded(own * scale * __ldg(weight + i));
  __syncthreads();
}

/// The embedding of the token and the features, each behind its norm, to x.
__device__ __forceinline__ void join(const GuessChain& work, int token, ChainShared& shared) {
  const int i = static_cast<int>(threadIdx.x);
  const int hidden = static_cast<int>(work.shape.hidden);
  const bool is_inside = i < hidden;
  float embedded = 0, feature = 0;
  if (is_inside) {
    embedded = __bfloat162float(work.embedding[static_cast<std::int64_t>(token) * hidden + i]);
    feature = shared.residual[i];
  }
  const float of_embedding = block_sum<kChainThreads>(embedded * embedded, shared.sums[0]);
  const float of_features = block_sum<kChainThreads>(feature * feature, shared.sums[1]);
  if (is_inside) {
    shared.x[i] = rounded(embedded * norm_scale(of_embedding, work) * __ldg(work.input_norm + i));
    const float normed = feature * norm_scale(of_features, work) * __ldg(work.hidden_norm + i);
    shared.x[hidden + i] = rounded(normed);
    if (work.norm_before_residual) shared.residual[i] = normed;
  }
  __syncthreads();
}

/// q, k and v of the newest position, and k and v to their page, once for each KV head.
__device__ __forceinline__ void bring_newest(const GuessChain& work, const Exchange& exchange,
                                             int head, int newest, ChainShared& shared) {
  const int num_heads = work.shape.num_heads, num_kv_heads = work.shape.num_kv_heads;
  const int group = num_heads / num_kv_heads, kv_head = head / group;
  const int thread = static_cast<int>(threadIdx.x), i = thread % kHalfHead;
  const bool is_q = thread < kHalfHead, is_k = thread / kHalfHead == 1;
  if (is_q || is_k) {
    const float* from = exchange.qkv + (is_q ? head : num_heads + kv_head) * kHeadDim;
    float low = __ldcg(from + i), high = __ldcg(from + kHalfHead + i);
    const float2 turn = __ldg(work.rope + static_cast<std::int64_t>(newest) * kHalfHead + i);
    rotate(low, high, turn.x, turn.y);
    float* to = is_q ? shared.q : shared.k;
    to[i] = rounded(low);
    to[kHalfHead + i] = rounded(high);
  } else if (thread < 2 * kHeadDim) {
    const int at = thread - kHeadDim;
    shared.v[at] =
        rounded(__ldcg(exchange.qkv + (num_heads + num_kv_heads + kv_head) * kHeadDim + at));
  }
  __syncthreads();
  const int page = __ldg(work.table + newest / kPageTokens);
  if (head % group != 0 || page < 0 || thread >= kHeadDim) return;
  const std::int64_t at =
      kv_row(num_kv_heads, page, kv_head, newest % kPageTokens) * kHeadDim + thread;
  static_cast<__nv_bfloat16*>(work.cache.k)[at] = __float2bfloat16(shared.k[thread]);
  static_cast<__nv_bfloat16*>(work.cache.v)[at] = __float2bfloat16(shared.v[thread]);
}

__device__ __forceinline__ void attend(const GuessChain& work, const Exchange& exchange, int head,
                                       int newest, ChainShared& shared) {
  bring_newest(work, exchange, head, newest, shared);
  const int num_kv_heads = work.shape.num_kv_heads;
  const int kv_head = head / (work.shape.num_heads / num_kv_heads);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const auto row_of = [&](int key) {
    const int page = max(__ldg(work.table + key / kPageTokens), 0);
    return kv_row(num_kv_heads, page, kv_head, key % kPageTokens);
  };
  constexpr float kScale = 0.125f;
  float top = -INFINITY;
  for (int key = thread; key <= newest; key += kChainThreads) {
    float score = 0;
    if (key == newest) {
      for (int d = 0; d < kHeadDim; ++d) score += shared.q[d] * shared.k[d];
    } else {
      const auto* from = static_cast<const uint4*>(work.cache.k) + row_of(key) * (kHeadDim / 8);
      const auto* q = reinterpret_cast<const float4*>(shared.q);
#pragma unroll
      for (int c = 0; c < kHeadDim / 8; ++c) {
        score += dot(__ldcg(from + c), q[2 * c], q[2 * c + 1]);
      }
    }
    shared.scores[key] = score * kScale;
    top = fmaxf(top, score * kScale);
  }
  top = block_top(top, shared.tops);
  float sum = 0;
  for (int key = thread; key <= newest; key += kChainThreads) {
    const float weight = expf(shared.scores[key] - top);
    shared.scores[key] = weight;
    sum += weight;
  }
  sum = block_sum<kChainThreads>(sum, shared.sums[0]);
  float2 own = {0, 0};
#pragma unroll 4
  for (int key = warp; key < newest; key += kChainWarps) {
    const auto* from = static_cast<const std::uint32_t*>(work.cache.v) + row_of(key) * kHalfHead;
    const float2 v = unpack_bf16(__ldcg(from + lane));
    own.x += shared.scores[key] * v.x;
    own.y += shared.scores[key] * v.y;
  }
  if (newest % kChainWarps == warp) {
    own.x += shared.scores[newest] * shared.v[2 * lane];
    own.y += shared.scores[newest] * shared.v[2 * lane + 1];
  }
  shared.x[warp * kHeadDim + 2 * lane] = own.x;
  shared.x[warp * kHeadDim + 2 * lane + 1] = own.y;
  __syncthreads();
  if (thread < kHeadDim) {
    float all = 0;
    for (int w = 0; w < kChainWarps; ++w) all += shared.x[w * kHeadDim + thread];
    exchange.attended[head * kHeadDim + thread] = rounded(all / sum);
  }
  __syncthreads();
}

/// The likeliest token of all rows; every thread gets it.
__device__ __forceinline__ int choose(const GuessChain& work, const Exchange& exchange,
                                      bool is_last, ChainShared& shared) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  Likeliest own{-INFINITY, INT_MAX};
  multiply(work.lm_head, static_cast<int>(work.shape.vocab), static_cast<int>(work.shape.hidden),
           shared.x, [&](int row, float logit) {
             own.see(logit, row);
             if (is_last) work.logits[row] = logit;
           });
  if (lane == 0) shared.likeliest[warp] = own;
  __syncthreads();
  if (thread == 0) {
    for (int w = 1; w < kChainWarps; ++w) {
      own.see(shared.likeliest[w].logit, shared.likeliest[w].id);
    }
    exchange.likeliest[2 * blockIdx.x] = own.logit;
    exchange.likeliest[2 * blockIdx.x + 1] = __int_as_float(own.id);
  }
  cluster_barrier();
  Likeliest all{-INFINITY, INT_MAX};
#pragma unroll
  for (int block = 0; block < kRowBlocks; ++block) {
    all.see(__ldcg(exchange.likeliest + 2 * block),
            __float_as_int(__ldcg(exchange.likeliest + 2 * block + 1)));
  }
  return all.id == INT_MAX ? -1 : all.id;
}

__global__ void GAUNTLET_CLUSTER_KERNEL __launch_bounds__(kChainThreads, 1)
    guess_chain_kernel(const __grid_constant__ GuessChain work) {
  __shared__ __align__(16) ChainShared shared;
  if (blockIdx.x >= kRowBlocks) return;
  const GuessChainShape& shape = work.shape;
  const int hidden = static_cast<int>(shape.hidden), thread = static_cast<int>(threadIdx.x);
  const int width = static_cast<int>(shape.width()), inner = static_cast<int>(shape.intermediate);
  const Exchange exchange(work);
  const auto to = [](float* out) { return [out](int row, float sum) { out[row] = sum; }; };
  const auto add = [&](const float* to_residual) {
    if (thread < hidden) shared.residual[thread] += __ldcg(to_residual + thread);
  };
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  if (thread < hidden) shared.residual[thread] = work.features[thread];
  int token = work.choices[0].token;
#pragma unroll 1
  for (int guess = 1; guess < work.num_guesses; ++guess) {
    const int newest = work.context[guess];
    join(work, max(token, 0), shared);
    multiply(work.qkv, static_cast<int>(shape.qkv_rows()), 2 * hidden, shared.x, to(exchange.qkv));
    cluster_barrier();
    for (int head = static_cast<int>(blockIdx.x); head < shape.num_heads; head += kRowBlocks) {
      attend(work, exchange, head, newest, shared);
    }
    cluster_barrier();
    for (int i = thread; i < width; i += kChainThreads) shared.x[i] = __ldcg(exchange.attended + i);
    __syncthreads();
    multiply(work.o, hidden, width, shared.x, to(exchange.o));
    cluster_barrier();
    add(exchange.o);
    norm_residual(work, work.mlp_norm, shared);
    multiply(work.gate_up, 2 * inner, hidden, shared.x, to(exchange.gate_up));
    cluster_barrier();
    for (int i = thread; i < inner; i += kChainThreads) {
      const float gate = __ldcg(exchange.gate_up + i), up = __ldcg(exchange.gate_up + inner + i);
      shared.x[i] = rounded(gate / (1.0f + expf(-gate)) * up);
    }
    __syncthreads();
    multiply(work.down, hidden, inner, shared.x, to(exchange.down));
    cluster_barrier();
    add(exchange.down);
    norm_residual(work, work.final_norm, shared);
    token = choose(work, exchange, guess == work.num_guesses - 1, shared);
    if (blockIdx.x == 0 && thread == 0) work.choices[guess] = {.token = token};
  }
}

}  // namespace

void guess_chain(const GuessChain& work, const Launch& how) {
  check(fits_guess_chain(work.shape) && work.cache.format == KvFormat::bf16,
        "guess_chain: a head is too large for one cluster");
  if (work.num_guesses < 2) return;
  launch(guess_chain_kernel, {.grid = dim3(kClusterBlocks), .block = dim3(kChainThreads)}, how,
         work);
}

}  // namespace gauntlet::kernels::cuda::inline draft
