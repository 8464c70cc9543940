// One step on the elements of a grid of threads, as both sides take it.
#pragma once
#include <cstdint>

#include "catalog/ch10/cooperative_persistent/pair.h"

namespace gauntlet::ch10::cooperative_persistent::cuda {

inline constexpr int kThreads = 256;

/// What step `step` reads and writes: `in` first, then the two in turn, `out` last.
__device__ __forceinline__ const float* source_of(const Params& p, std::int64_t step) {
  return step == 0 ? p.in : step % 2 == 1 ? p.other : p.out;
}
__device__ __forceinline__ float* target_of(const Params& p, std::int64_t step) {
  return step % 2 == 0 ? p.other : p.out;
}

/// Elements thread, thread + threads, ... of the matrix.
__device__ __forceinline__ void relax(const Params& p, std::int64_t step, int thread, int threads) {
  const float* from = source_of(p, step);
  float* to = target_of(p, step);
  const auto columns = static_cast<int>(p.columns), rows = static_cast<int>(p.rows);
  for (int i = thread; i < rows * columns; i += threads) {
    const int row = i / columns, column = i % columns;
    const float up = row > 0 ? from[i - columns] : 0;
    const float down = row + 1 < rows ? from[i + columns] : 0;
    const float left = column > 0 ? from[i - 1] : 0;
    const float right = column + 1 < columns ? from[i + 1] : 0;
    to[i] = ((up + down) + (left + right)) * 0.25f;
  }
}

}  // namespace gauntlet::ch10::cooperative_persistent::cuda
