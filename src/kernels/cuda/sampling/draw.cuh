// Which ids of a row the filters leave, and which of those a draw takes. A weight is a whole number
// of 2^-44 of the largest one: sums are exact, so that no order of adding changes a bit.
#pragma once
#include <cstdint>

#include "kernels/cuda/sampling/cluster_row.cuh"
#include "kernels/cuda/sampling/sample.h"
#include "ptx/exp2.cuh"

namespace gauntlet::kernels::cuda::inline sampling {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kOneWeight = 0x1p44f;
static_assert(kMostVocab <= 1 << 19, "sums of weights have 63 bits");
constexpr int kBinBits = kRowBlocks > 1 ? 10 : 9;
constexpr int kBins = 1 << kBinBits;
/// Bins that a block sums over the cluster, one to a thread.
constexpr int kSlice = kBins / kRowBlocks;
static_assert(kSlice % 32 == 0 && kSlice <= kRowThreads && kRowWarps <= 32);

/// A sum in shared memory, which adds 32 bits at a time: whoever overflows the lower half carries.
struct alignas(8) Bin {
  std::uint32_t low = 0;
  std::uint32_t high = 0;

  __device__ __forceinline__ void add(std::uint64_t size) {
    const auto added = static_cast<std::uint32_t>(size);
    const std::uint32_t carry = atomicAdd(&low, added) + added < added ? 1 : 0;
    const std::uint32_t rest = static_cast<std::uint32_t>(size >> 32) + carry;
    if (rest != 0) atomicAdd(&high, rest);
  }
  __device__ __forceinline__ std::uint64_t size() const { return std::uint64_t{high} << 32 | low; }
};

struct FoundBin {
  int bin = -1;              // -1: all bins together hold less than was wanted
  std::uint64_t before = 0;  // in the bins before it
  std::uint64_t size = 0;
};

struct DrawShared {
  Bin bins[kBins];                // zero between searches
  std::uint64_t running[kSlice];  // sums up to each bin of this block's slice, over the cluster
  std::uint64_t warps[kRowWarps];
  Exchanged<std::uint64_t> sums;
  FoundBin found;
  std::int32_t located;
};

/// The order of floats as that of unsigned integers; -0 is 0.
__device__ __forceinline__ std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float from_order(std::uint32_t order) {
  return __uint_as_float(order & 0x80000000u ? order ^ 0x80000000u : ~order);
}

constexpr std::uint32_t kOrderOfNothing = 0x007FFFFF;  // ordered(-inf)

/// What is left of a row: logits above a bound, and those at it up to an id.
struct Kept {
  std::uint32_t bound = kOrderOfNothing;
  std::int32_t last_id = INT32_MIN;

  __device__ __forceinline__ bool holds(std::uint32_t order, int id) const {
    return order > bound || (order == bound && id <= last_id);
  }
  __device__ __forceinline__ bool holds(float logit, int id) const {
    return holds(ordered(logit), id);
  }
};

__device__ __forceinline__ std::uint64_t warp_sum(std::uint64_t value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, offset);
  }
  return value;
}

/// The sum over the lanes up to each.
__device__ __forceinline__ std::uint64_t warp_running_sum(std::uint64_t value, int lane) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const std::uint64_t before = __shfl_up_sync(0xFFFFFFFF, value, offset);
    if (lane >= offset) value += before;
  }
  return value;
}

/// One row's draw. Every thread of the cluster calls every function, with the same arguments.
class Draw {
 public:
  __device__ Draw(const Row& row, DrawShared& shared)
      : row_(row), shared_(shared), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {
    clear_bins();
    __syncthreads();
  }

  /// `top` is the largest permitted logit, above -inf; every warp of the cluster has one at or
  /// above `floor`.
  __device__ std::int32_t token(const DrawParams& how, float top, float floor) {
    const float scale = kLog2E / how.temperature;
    const auto weigh = [&](float logit) {
      return logit == top ? 1.0f : ptx::exp2_approx((logit - top) * scale);
    };
    const auto whole = [](float weight) {
      return static_cast<std::uint64_t>(__float2ull_rz(weight * kOneWeight));
    };
    const auto weight = [&](float logit) { return whole(weigh(logit)); };
    Kept kept;
    int most = row_.vocab;
    // Top-k, then top-p: one body, because a cut is long and the code of two would be read twice.
#pragma unroll 1
    for (int filter = 0; filter < 2; ++filter) {
      const bool counts = filter == 0;
      if (counts ? how.top_k <= 0 || how.top_k >= row_.vocab : how.top_p >= 1) continue;
      std::uint64_t wanted;
      float low;
      if (counts) {
        wanted = most = how.top_k;
        low = most <= kRowBlocks * kRowWarps ? floor : -INFINITY;
      } else {
        const auto total = static_cast<double>(
            sum([&](float logit, int id) { return kept.holds(logit, id) ? weight(logit) : 0; }));
        wanted = max(1ull, __double2ull_ru(how.top_p * total));
        // The last one kept outweighs the mean of those dropped. Half of that, for rounding.
        const double least = (1 - how.top_p) * total / (2.0 * kOneWeight * most);
        low = top + how.temperature * logf(static_cast<float>(least));
      }
      kept = cut(kept, max(kept.bound, ordered(low)), ordered(top), wanted,
                 [&](float logit) { return counts ? 1 : weight(logit); });
    }
    return locate(
        [&](std::uint64_t total) {
          const std::uint64_t aimed = __double2ull_rz(how.point * static_cast<double>(total));
          return min(aimed, total - 1);
        },
        [&](float logit, int id) -> std::uint64_t {
          if (!kept.holds(logit, id)) return 0;
          const float relative = weigh(logit);
          return relative < how.min_p ? 0 : whole(relative);
        });
  }

 private:
  __device__ void clear_bins() {
    for (int i = threadIdx.x; i < kBins; i += kRowThreads) shared_.bins[i] = {};
  }

  template <class Measure>
  __device__ std::uint64_t sum(Measure measure) {
    std::uint64_t own = 0;
    row_.each(row_.begin + threadIdx.x, row_.end, kRowThreads,
              [&](float logit, int id) { own += measure(logit, id); });
    return total_of(say_sum(own));
  }

  /// The sums of all blocks; shared.warps has those of this block's warps.
  __device__ const std::uint64_t* say_sum(std::uint64_t own) {
    own = warp_sum(own);
    if (lane_ == 0) shared_.warps[warp_] = own;
    __syncthreads();
    const std::uint64_t block =
        warp_ == 0 ? warp_sum(lane_ < kRowWarps ? shared_.warps[lane_] : 0) : 0;
    return exchange(shared_.sums, turn_, block);
  }

  __device__ static std::uint64_t total_of(const std::uint64_t* sums) {
    std::uint64_t total = 0;
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) total += sums[b];
    return total;
  }

  /// The shortest beginning of what is kept, larger logits and then lower ids first, that measures
  /// at least `wanted`. It ends between the orders `low` and `high`; nothing lies above `high`. The
  /// measure of a larger logit is not smaller.
  template <class Measure>
  __device__ Kept cut(const Kept& kept, std::uint32_t low, std::uint32_t high, std::uint64_t wanted,
                      Measure measure) {
    std::uint64_t above = 0;  // what `high` and larger measured in earlier rounds
    for (;;) {
      const int shift = max(0, 32 - __clz(high - low) - kBinBits);
      row_.each(row_.begin + threadIdx.x, row_.end, kRowThreads, [&](float logit, int id) {
        const std::uint32_t order = ordered(logit);
        if (order < low || order > high || !kept.holds(order, id)) return;
        shared_.bins[(high - order) >> shift].add(measure(logit));
      });
      const FoundBin found = find(wanted - above);
      if (found.bin < 0) return kept;
      above += found.before;
      high -= static_cast<std::uint32_t>(found.bin) << shift;
      low = max(low, high - ((1u << shift) - 1));
      // All of the bin is wanted if its last one is, whose measure is this or more.
      const std::uint64_t least = measure(from_order(low));
      if (above + found.size - least < wanted) {
        return low > kept.bound ? Kept{.bound = low - 1} : kept;
      }
      if (shift > 0) continue;
      const std::uint64_t ties = (wanted - above + least - 1) / least;
      const std::int32_t last_id = locate([&](std::uint64_t) { return ties - 1; },
                                          [&](float logit, int id) -> std::uint64_t {
                                            const std::uint32_t order = ordered(logit);
                                            return order == low && kept.holds(order, id) ? 1 : 0;
                                          });
      return {.bound = low, .last_id = last_id};
    }
  }

  /// The bin with which all blocks' bins, laid end to end, reach `wanted`. Clears the bins.
  __device__ FoundBin find(std::uint64_t wanted) {
    cluster_barrier();
    const bool sums = threadIdx.x < kSlice;
    std::uint64_t size = 0;
    if (sums) {
      Bin& bin = shared_.bins[blockIdx.x * kSlice + threadIdx.x];
#pragma unroll
      for (int b = 0; b < kRowBlocks; ++b) size += of_block(bin, b).size();
    }
    std::uint64_t up_to = warp_running_sum(size, lane_);
    if (lane_ == 31) shared_.warps[warp_] = up_to;
    __syncthreads();
    std::uint64_t slice = 0;
#pragma unroll
    for (int w = 0; w < kSlice / 32; ++w) {
      if (w < warp_) up_to += shared_.warps[w];
      slice += shared_.warps[w];
    }
    if (sums) shared_.running[threadIdx.x] = up_to;
    const std::uint64_t* slices = exchange(shared_.sums, turn_, slice);
    clear_bins();
    int owner = 0;
    std::uint64_t before = 0;
    while (owner < kRowBlocks && before + slices[owner] < wanted) before += slices[owner++];
    if (owner == kRowBlocks) return {};
    if (sums) {
      const int at = threadIdx.x;
      const std::uint64_t to = before + of_block(shared_.running[at], owner);
      const std::uint64_t from =
          at > 0 ? before + of_block(shared_.running[at - 1], owner) : before;
      if (from < wanted && wanted <= to) {
        shared_.found = {.bin = owner * kSlice + at, .before = from, .size = to - from};
      }
    }
    __syncthreads();
    return shared_.found;
  }

  /// The id at aim(total), which is less than the total, of the measures laid end to end in the
  /// order of ids.
  template <class Aim, class Measure>
  __device__ std::int32_t locate(Aim aim, Measure measure) {
    const int share = (row_.end - row_.begin + kRowWarps - 1) / kRowWarps;
    const int begin = min(row_.end, row_.begin + warp_ * share);
    const int end = min(row_.end, begin + share);
    std::uint64_t own = 0;
    row_.each(begin + lane_, end, 32, [&](float logit, int id) { own += measure(logit, id); });
    const std::uint64_t* blocks = say_sum(own);
    std::uint64_t left = aim(total_of(blocks));
    int owner = 0;
    while (owner < kRowBlocks - 1 && left >= blocks[owner]) left -= blocks[owner++];
    if (owner == static_cast<int>(blockIdx.x)) {
      int warp = 0;
      while (warp < kRowWarps - 1 && left >= shared_.warps[warp]) left -= shared_.warps[warp++];
      if (warp == warp_) walk(begin, end, left, measure);
    }
    cluster_barrier();
    return shared_.located;
  }

  /// A warp looks for the id at `left` among its own and tells every block.
  template <class Measure>
  __device__ void walk(int begin, int end, std::uint64_t left, Measure measure) {
    for (int quad = begin; quad < end; quad += 32) {
      const int id = row_.first_id(quad + lane_);
      std::uint64_t sizes[4] = {};
      row_.batches<1>(quad + lane_, min(end, quad + 32), 32, [&](const float4(&batch)[1], int) {
        const float4 logits = row_.permitted(batch[0], id);
        sizes[0] = measure(logits.x, id);
        sizes[1] = measure(logits.y, id + 1);
        sizes[2] = measure(logits.z, id + 2);
        sizes[3] = measure(logits.w, id + 3);
      });
      const std::uint64_t own = sizes[0] + sizes[1] + sizes[2] + sizes[3];
      const std::uint64_t up_to = warp_running_sum(own, lane_);
      const std::uint64_t all = __shfl_sync(0xFFFFFFFF, up_to, 31);
      if (left >= all) {
        left -= all;
        continue;
      }
      if (left >= up_to || left < up_to - own) return;
      left -= up_to - own;
      int at = 0;
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        if (at < j || left < sizes[j]) continue;
        left -= sizes[j];
        ++at;
      }
      for (int b = 0; b < kRowBlocks; ++b) of_block(shared_.located, b) = id + at;
      return;
    }
  }

  const Row& row_;
  DrawShared& shared_;
  const int warp_;
  const int lane_;
  int turn_ = 0;
};

}  // namespace gauntlet::kernels::cuda::inline sampling
