// A row of logits that the blocks of a cluster share: each has a stretch of neighbouring ids, which
// its L1 holds from the first pass on. Before sm_90 one block has them all.
#pragma once
#include <cstdint>

#include "ptx/cluster.cuh"

namespace gauntlet::kernels::cuda::inline sampling {

/// Blocks launched for a row: the most that every GPU with clusters takes.
constexpr int kClusterBlocks = 8;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GAUNTLET_CLUSTER_KERNEL __cluster_dims__(kClusterBlocks, 1, 1)
constexpr int kRowBlocks = kClusterBlocks;
#else
#define GAUNTLET_CLUSTER_KERNEL
constexpr int kRowBlocks = 1;  // the blocks beyond the first end at once
#endif
constexpr int kRowThreads = 512;
constexpr int kRowWarps = kRowThreads / 32;

/// A block calls this before anything else: until wait_for_cluster() another block may not have
/// started, and then it has no shared memory to write to.
__device__ __forceinline__ void announce_block() {
  if constexpr (kRowBlocks > 1) ptx::cluster_arrive();
}

__device__ __forceinline__ void wait_for_cluster() {
  if constexpr (kRowBlocks > 1) ptx::cluster_wait();
}

__device__ __forceinline__ void cluster_barrier() {
  if constexpr (kRowBlocks > 1) {
    __syncwarp();
    ptx::cluster_arrive();
    ptx::cluster_wait();
  } else {
    __syncthreads();
  }
}

/// The same variable of another block of the cluster.
template <class T>
__device__ __forceinline__ T& of_block(T& own, int block) {
  if constexpr (kRowBlocks > 1) {
    return *ptx::in_block(&own, block);
  } else {
    return own;
  }
}

/// What every block gives at one barrier. Two turns: while some still read one, others may write
/// the next, and the barrier of that one frees the first.
template <class T>
struct Exchanged {
  T turns[2][kRowBlocks];
};

/// Every block gives a value, which its first threads know; every thread can read all of them.
template <class T>
__device__ __forceinline__ const T* exchange(Exchanged<T>& exchanged, int& turn, const T& own) {
  turn ^= 1;
  if (threadIdx.x < kRowBlocks) of_block(exchanged.turns[turn][blockIdx.x], threadIdx.x) = own;
  cluster_barrier();
  return exchanged.turns[turn];
}

struct Row {
  const float4* quads = nullptr;           // from the 16 bytes in which the row begins
  const std::uint32_t* allowed = nullptr;  // a bit per id; null: everything
  int vocab = 0;
  int offset = 0;  // of the row in its first quad: quad q begins with id 4 q - offset
  int begin = 0;   // this block's quads
  int end = 0;

  __device__ Row(const float* logits, const std::uint32_t* allowed, int vocab)
      : allowed(allowed), vocab(vocab) {
    offset = static_cast<int>(reinterpret_cast<std::uintptr_t>(logits) / sizeof(float) % 4);
    quads = reinterpret_cast<const float4*>(logits - offset);
    const int count = (vocab + offset + 3) / 4;
    const int share = (count + kRowBlocks - 1) / kRowBlocks;
    begin = min(count, static_cast<int>(blockIdx.x) * share);
    end = min(count, begin + share);
  }

  __device__ __forceinline__ int first_id(int quad) const { return 4 * quad - offset; }

  /// -inf for what is not a number, or not of this row.
  __device__ __forceinline__ float4 cleaned(float4 quad, int id) const {
    if (id < 0 || id + 4 > vocab) {
      const auto inside = [&](int i) { return i >= 0 && i < vocab; };
      quad = make_float4(inside(id) ? quad.x : -INFINITY, inside(id + 1) ? quad.y : -INFINITY,
                         inside(id + 2) ? quad.z : -INFINITY, inside(id + 3) ? quad.w : -INFINITY);
    }
    return make_float4(fmaxf(quad.x, -INFINITY), fmaxf(quad.y, -INFINITY), fmaxf(quad.z, -INFINITY),
                       fmaxf(quad.w, -INFINITY));
  }

  /// -inf for what the mask forbids.
  __device__ __forceinline__ float4 permitted(float4 quad, int id) const {
    if (allowed == nullptr) return quad;
    // Ids outside of the row have no bit, and -inf already.
    const auto one = [&](float logit, int i) {
      if (logit == -INFINITY) return logit;
      return (allowed[i >> 5] >> (i & 31) & 1) != 0 ? logit : -INFINITY;
    };
    return make_float4(one(quad.x, id), one(quad.y, id + 1), one(quad.z, id + 2),
                       one(quad.w, id + 3));
  }

  /// Shows each `step`-th quad of [from, stop), some at a time: show(quads, the first one's index).
  /// All are loaded before one is waited for.
  template <int kCount, class Show>
  __device__ __forceinline__ void batches(int from, int stop, int step, Show show) const {
#pragma unroll 1
    for (int quad = from; quad < stop; quad += kCount * step) {
      float4 batch[kCount];
#pragma unroll
      for (int b = 0; b < kCount; ++b) {
        const int at = quad + b * step;
        batch[b] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
        if (at < stop) batch[b] = quads[at];
      }
#pragma unroll
      for (int b = 0; b < kCount; ++b) {
        batch[b] = cleaned(batch[b], first_id(quad + b * step));
      }
      show(batch, quad);
    }
  }

  /// Shows each permitted logit and its id.
  template <class Show>
  __device__ __forceinline__ void each(int from, int stop, int step, Show show) const {
    batches<1>(from, stop, step, [&](const float4(&batch)[1], int quad) {
      const int id = first_id(quad);
      const float4 logits = permitted(batch[0], id);
      show(logits.x, id);
      show(logits.y, id + 1);
      show(logits.z, id + 2);
      show(logits.w, id + 3);
    });
  }
};

}  // namespace gauntlet::kernels::cuda::inline sampling
