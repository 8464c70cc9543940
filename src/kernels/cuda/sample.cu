// Greedy rows are cut into parts that many blocks reduce; the last block of a row joins them in
// order. Drawn rows take a block each and several passes over logits that lie in L2.
#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sample.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kParts = 32;
constexpr int kThreads = 256;
constexpr int kDrawThreads = 1024;

/// The largest logit, its first id, and the sum of exponentials relative to it.
struct Part {
  float top = -INFINITY;
  std::int32_t id = INT32_MAX;
  float sum = 0;
};

__device__ __forceinline__ Part join(Part a, Part b) {
  const bool first = a.top > b.top || (a.top == b.top && a.id < b.id);
  const float top = first ? a.top : b.top;
  const float scaled_a = a.top == top ? a.sum : a.sum * __expf(a.top - top);
  const float scaled_b = b.top == top ? b.sum : b.sum * __expf(b.top - top);
  return {top, first ? a.id : b.id, scaled_a + scaled_b};
}

/// Joined over the block in a fixed order; thread 0 has the result.
template <int kSize>
__device__ Part join_block(Part part, Part* shared) {
  shared[threadIdx.x] = part;
  __syncthreads();
#pragma unroll
  for (int stride = kSize / 2; stride > 0; stride /= 2) {
    if (static_cast<int>(threadIdx.x) < stride) {
      shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + stride]);
    }
    __syncthreads();
  }
  return shared[0];
}

__device__ __forceinline__ void take(Part& part, float logit, std::int32_t id) {
  if (logit > part.top) {
    part.sum = part.sum * __expf(part.top - logit) + 1;
    part.top = logit;
    part.id = id;
  } else if (logit > -INFINITY) {
    part.sum += __expf(logit - part.top);
  }
}

struct GreedyWorkspace {
  std::int32_t* finished = nullptr;  // [kMostGreedyRows], zero between launches
  Part* parts = nullptr;             // [rows, kParts]
};

__device__ RowChoice choice_of(const Sample& work, std::int64_t row, const Part& all) {
  RowChoice choice;
  const float normaliser = all.top + logf(all.sum);
  if (all.top > -INFINITY) {
    choice.token = all.id;
    choice.log_probability = all.top - normaliser;
  }
  const std::int32_t target = work.targets != nullptr ? work.targets[row] : -1;
  if (target >= 0) {
    choice.target_log_probability = work.logits[row * work.stride + target] - normaliser;
  }
  return choice;
}

__global__ void __launch_bounds__(kThreads)
    greedy_kernel(const Sample work, const GreedyWorkspace space) {
  __shared__ Part shared[kThreads];
  __shared__ bool last;
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t row = blockIdx.y;
  const float* logits = work.logits + row * work.stride;
  const int per_part = static_cast<int>((work.vocab + kParts - 1) / kParts);
  const int begin = blockIdx.x * per_part;
  const int end = min(static_cast<int>(work.vocab), begin + per_part);
  Part part;
  for (int i = begin + threadIdx.x; i < end; i += kThreads) take(part, logits[i], i);
  part = join_block<kThreads>(part, shared);
  if (threadIdx.x == 0) {
    space.parts[row * kParts + blockIdx.x] = part;
    __threadfence();
    last = atomicAdd(space.finished + row, 1) == kParts - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  __threadfence();
  space.finished[row] = 0;
  Part all = space.parts[row * kParts];
  for (int p = 1; p < kParts; ++p) all = join(all, space.parts[row * kParts + p]);
  work.out[row] = choice_of(work, row, all);
}

/// Sums over the block in a fixed order; every thread gets the sum.
__device__ double sum_block(double value, double* shared) {
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
#pragma unroll
  for (int stride = kDrawThreads / 2; stride > 0; stride /= 2) {
    if (static_cast<int>(threadIdx.x) < stride) {
      shared[threadIdx.x] += shared[threadIdx.x + stride];
    }
    __syncthreads();
  }
  return shared[0];
}

/// The order of floats as that of unsigned integers.
__device__ __forceinline__ std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// The largest bound such that what lies at or above it has at least `wanted` of `measure`, found
/// bit by bit. `measure(value)` is summed over the row.
template <typename Value, typename Measure>
__device__ std::uint32_t bound_of(int count, double wanted, double* shared, Value value,
                                  Measure measure) {
  std::uint32_t bound = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t tried = bound | 1u << bit;
    double held = 0;
    for (int i = threadIdx.x; i < count; i += kDrawThreads) {
      if (ordered(value(i)) >= tried) held += measure(value(i));
    }
    if (sum_block(held, shared) >= wanted) bound = tried;
  }
  return bound;
}

/// Keeps of the ids at the bound only as many, lowest first, as are still wanted. A thread owns a
/// stretch of ids, so that their order is kept.
template <typename Measure>
__device__ void cut_at_bound(float* weights, int count, std::uint32_t bound, double wanted,
                             double* shared, Measure measure) {
  double above = 0;
  for (int i = threadIdx.x; i < count; i += kDrawThreads) {
    if (ordered(weights[i]) > bound) above += measure(weights[i]);
  }
  double left = wanted - sum_block(above, shared);
  const int stretch = (count + kDrawThreads - 1) / kDrawThreads;
  const int begin = min(count, static_cast<int>(threadIdx.x) * stretch);
  const int end = min(count, begin + stretch);
  double own = 0;
  for (int i = begin; i < end; ++i) {
    if (ordered(weights[i]) == bound) own += measure(weights[i]);
  }
  __syncthreads();
  shared[threadIdx.x] = own;
  __syncthreads();
  for (int t = 0; t < static_cast<int>(threadIdx.x); ++t) left -= shared[t];
  for (int i = begin; i < end; ++i) {
    const std::uint32_t order = ordered(weights[i]);
    if (order < bound) weights[i] = 0;
    if (order != bound) continue;
    const double size = measure(weights[i]);
    if (left <= 0) weights[i] = 0;
    left -= size;
  }
  __syncthreads();
}

/// The id at `point` of the weights laid end to end in the order of ids.
__device__ void draw(const float* weights, int count, double point, double* shared,
                     std::int32_t* token) {
  const int stretch = (count + kDrawThreads - 1) / kDrawThreads;
  const int begin = min(count, static_cast<int>(threadIdx.x) * stretch);
  const int end = min(count, begin + stretch);
  double own = 0;
  for (int i = begin; i < end; ++i) own += weights[i];
  __syncthreads();
  shared[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = 0;
  for (int t = 0; t < kDrawThreads; ++t) total += shared[t];
  double left = point * total;
  int chosen = 0;
  for (int t = 0; t < kDrawThreads; ++t) {
    if (shared[t] <= 0) continue;
    chosen = t;
    if (left < shared[t]) break;
    left -= shared[t];
  }
  // Rounding may carry a point near the end of its stretch past it: the last token has it then.
  for (int i = chosen * stretch; i < min(count, (chosen + 1) * stretch); ++i) {
    if (weights[i] <= 0) continue;
    *token = i;
    if (left < weights[i]) break;
    left -= weights[i];
  }
}

__global__ void __launch_bounds__(kDrawThreads, 1) sample_kernel(const Sample work) {
  __shared__ Part parts[kDrawThreads];
  __shared__ double sums[kDrawThreads];
  __shared__ std::int32_t token;
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t row = blockIdx.x;
  const int count = static_cast<int>(work.vocab);
  const float* logits = work.logits + row * work.stride;
  const DrawParams how = work.params[row];
  const std::uint32_t* mask =
      work.allowed != nullptr ? work.allowed + row * work.allowed_words : nullptr;
  const auto allowed = [&](int i) { return mask == nullptr || (mask[i / 32] >> i % 32 & 1) != 0; };

  Part everything, permitted;
  for (int i = threadIdx.x; i < count; i += kDrawThreads) {
    take(everything, logits[i], i);
    if (allowed(i)) take(permitted, logits[i], i);
  }
  everything = join_block<kDrawThreads>(everything, parts);
  __syncthreads();
  permitted = join_block<kDrawThreads>(permitted, parts);
  RowChoice choice = choice_of(work, row, everything);
  choice.token = permitted.top > -INFINITY ? permitted.id : -1;
  if (how.temperature > 0 && choice.token >= 0) {
    float* weights = work.weights + row * work.stride;
    const auto weigh = [&](float logit) {
      return logit == permitted.top ? 1.0f : expf((logit - permitted.top) / how.temperature);
    };
    for (int i = threadIdx.x; i < count; i += kDrawThreads) {
      weights[i] = allowed(i) && logits[i] > -INFINITY ? weigh(logits[i]) : 0.0f;
    }
    __syncthreads();
    const auto weight = [&](int i) { return weights[i]; };
    if (how.top_k > 0 && how.top_k < count) {
      const auto one = [](float w) { return w > 0 ? 1.0 : 0.0; };
      const std::uint32_t bound = bound_of(count, how.top_k, sums, weight, one);
      cut_at_bound(weights, count, bound, how.top_k, sums, one);
    }
    if (how.top_p < 1) {
      const auto itself = [](float w) { return static_cast<double>(w); };
      double own = 0;
      for (int i = threadIdx.x; i < count; i += kDrawThreads) own += weights[i];
      const double wanted = static_cast<double>(how.top_p) * sum_block(own, sums);
      const std::uint32_t bound = bound_of(count, wanted, sums, weight, itself);
      cut_at_bound(weights, count, bound, wanted, sums, itself);
    }
    if (how.min_p > 0) {
      for (int i = threadIdx.x; i < count; i += kDrawThreads) {
        if (weights[i] < how.min_p) weights[i] = 0;
      }
      __syncthreads();
    }
    draw(weights, count, how.point, sums, &token);
    __syncthreads();
    choice.token = token;
  }
  if (threadIdx.x != 0) return;
  if (choice.token >= 0) {
    choice.log_probability = logits[choice.token] - (everything.top + logf(everything.sum));
  }
  work.out[row] = choice;
}

}  // namespace

std::int64_t sample_greedy_workspace_bytes(std::int64_t most_rows) {
  return kMostGreedyRows * static_cast<std::int64_t>(sizeof(std::int32_t)) +
         most_rows * static_cast<std::int64_t>(kParts * sizeof(Part));
}

void sample_greedy(const Sample& work, void* workspace, const Launch& how) {
  check(work.num_rows <= kMostGreedyRows, "more rows than a greedy launch takes");
  GreedyWorkspace space{.finished = static_cast<std::int32_t*>(workspace)};
  space.parts = reinterpret_cast<Part*>(space.finished + kMostGreedyRows);
  launch(greedy_kernel,
         {.grid = dim3(kParts, static_cast<unsigned>(work.num_rows)), .block = dim3(kThreads)}, how,
         work, space);
}

void sample(const Sample& work, const Launch& how) {
  launch(sample_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_rows)), .block = dim3(kDrawThreads)}, how,
         work);
}

}  // namespace gauntlet::kernels::cuda
