// From which size on is it faster to copy? Measured by the sides themselves, on the machine that
// they run on.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>

#include "catalog/ch02/zero_copy_small/pair.h"
#include "core/cuda/memory.h"
#include "lab/author/side.h"

namespace gauntlet::ch02::zero_copy_small {

using Factory = lab::Side (*)(const Params&, const lab::Cuda&);

/// The least that some runs in a row took.
inline double best_us(const lab::Side& side, cudaStream_t stream) {
  constexpr int kRuns = 20, kTries = 7;
  const CudaEvent start(CudaEvent::Clock::runs), stop(CudaEvent::Clock::runs);
  double best = INFINITY;
  for (int i = 0; i < kTries; ++i) {
    cuda_check(cudaStreamSynchronize(stream));
    start.record(stream);
    for (int j = 0; j < kRuns; ++j) side.run();
    stop.record(stream);
    stop.wait();
    best = std::min(best, stop.us_since(start));
  }
  return best;
}

/// Bytes of the smallest power of two at which copies win, as they do at the next; twice the
/// largest size tried where they never do. Once per process, by the first set of buffers.
inline double crossover_bytes(Crossover& crossover, const lab::Cuda& cuda, Factory copied,
                              Factory mapped) {
  constexpr std::int64_t kLeastWords = 64, kMostWords = std::int64_t{1} << 21;
  std::call_once(crossover.measured, [&] {
    const PinnedMemory in(4 * kMostWords), out(4 * kMostWords);
    const DeviceMemory staged(4 * kMostWords);
    Params p{.in = reinterpret_cast<const std::uint32_t*>(in.data()),
             .out = reinterpret_cast<std::uint32_t*>(out.data()),
             .staged = reinterpret_cast<std::uint32_t*>(staged.data()),
             .words = kLeastWords};
    int wins = 0;
    for (; p.words <= kMostWords && wins < 2; p.words *= 2) {
      const double copies_us = best_us(copied(p, cuda), cuda.stream);
      wins = copies_us < best_us(mapped(p, cuda), cuda.stream) ? wins + 1 : 0;
    }
    // The loop is one size past the second win, or past the last size.
    crossover.bytes = 4 * static_cast<double>(wins == 2 ? p.words / 4 : p.words);
  });
  return crossover.bytes;
}

}  // namespace gauntlet::ch02::zero_copy_small
