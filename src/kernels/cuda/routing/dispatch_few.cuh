// Dispatch by one block: up to 32 picks by counting, for each, those that come first; up to
// kMostDispatchTokens tokens by a stable counting sort.
#pragma once
#include <cstdint>

#include "kernels/cuda/routing/router.h"

namespace gauntlet::kernels::cuda::inline routing {

/// Picks of a warp.
constexpr int kChunk = 32;

struct DispatchChunk {
  std::int32_t chosen[kChunk];  // -1 from the last pick on
  float weights[kChunk];
};

/// The first warp dispatches a pick each, threads after it write where an expert begins, the last
/// of them where all end.
__device__ __forceinline__ void dispatch_chunk(const Dispatch& work, const DispatchChunk& chunk) {
  const bool is_pick = threadIdx.x < kChunk;
  const int pick = is_pick ? static_cast<int>(threadIdx.x) : 0;
  const int expert = is_pick ? chunk.chosen[pick] : static_cast<int>(threadIdx.x) - kChunk;
  if (expert < 0 || expert > work.num_experts) return;
  int slot = 0;
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    // As unsigned numbers, -1 is above all experts.
    const auto end = static_cast<unsigned>(i < pick ? expert + 1 : expert);
    slot += static_cast<unsigned>(chunk.chosen[i]) < end ? 1 : 0;
  }
  if (!is_pick) {
    work.first_slot[expert] = slot;
    return;
  }
  work.slot_token[slot] = pick / work.experts_per_token;
  work.slot_row[slot] = pick;
  work.slot_weight[slot] = chunk.weights[pick];
}

constexpr int kMostChunks = static_cast<int>(kMostDispatchTokens) * kMostExpertsPerToken / kChunk;

template <int kExperts>
struct DispatchBoard {
  std::uint16_t before[kMostChunks]
                      [kExperts];     // an expert's picks of a chunk, then of those before
  std::int32_t first[kExperts];       // where an expert begins among its 32
  std::int32_t total[kExperts / 32];  // of 32 experts

  /// Where an expert's slots begin.
  __device__ __forceinline__ int first_slot(int expert) const {
    int slot = first[expert];
    for (int w = 0; w < expert / 32; ++w) slot += total[w];
    return slot;
  }
};

/// Warps take chunks in turn; a thread keeps its picks in registers.
template <int kThreads, int kExperts>
__device__ __forceinline__ void dispatch_few(const Dispatch& work, DispatchBoard<kExperts>& board) {
  constexpr unsigned kAll = 0xFFFFFFFF;
  constexpr int kWarps = kThreads / 32;
  constexpr int kRounds = (kMostChunks + kWarps - 1) / kWarps;
  static_assert(kExperts <= kThreads);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int picks = static_cast<int>(work.num_tokens) * work.experts_per_token;
  const int chunks = (picks + kChunk - 1) / kChunk;
  int expert[kRounds], place[kRounds];
  float weight[kRounds];
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const int pick = (warp + j * kWarps) * kChunk + lane;
    expert[j] = pick < picks ? work.chosen[pick] : -1;
    weight[j] = pick < picks ? work.weights[pick] : 0;
  }
  auto* pairs = reinterpret_cast<std::uint32_t*>(board.before);
  for (int i = threadIdx.x; i < chunks * kExperts / 2; i += kThreads) pairs[i] = 0;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const int chunk = warp + j * kWarps;
    if (chunk >= chunks) break;
    const unsigned same = __match_any_sync(kAll, expert[j]);
    place[j] = __popc(same & ((1u << lane) - 1));
    if (expert[j] >= 0 && place[j] == 0) {
      board.before[chunk][expert[j]] = static_cast<std::uint16_t>(__popc(same));
    }
  }
  __syncthreads();
  int own = 0;
  if (threadIdx.x < kExperts) {
#pragma unroll 8
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int here = board.before[chunk][threadIdx.x];
      board.before[chunk][threadIdx.x] = static_cast<std::uint16_t>(own);
      own += here;
    }
    int up_to = own;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int other = __shfl_up_sync(kAll, up_to, offset);
      if (lane >= offset) up_to += other;
    }
    board.first[threadIdx.x] = up_to - own;
    if (lane == 31) board.total[warp] = up_to;
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < work.num_experts) {
    const int first = board.first_slot(static_cast<int>(threadIdx.x));
    work.first_slot[threadIdx.x] = first;
    if (static_cast<int>(threadIdx.x) == work.num_experts - 1) {
      work.first_slot[work.num_experts] = first + own;
    }
  }
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const int chunk = warp + j * kWarps;
    if (chunk >= chunks) break;
    if (expert[j] < 0) continue;
    const int pick = chunk * kChunk + lane;
    const int slot = board.first_slot(expert[j]) + board.before[chunk][expert[j]] + place[j];
    work.slot_token[slot] = pick / work.experts_per_token;
    work.slot_row[slot] = pick;
    work.slot_weight[slot] = weight[j];
  }
}

}  // namespace gauntlet::kernels::cuda::inline routing
