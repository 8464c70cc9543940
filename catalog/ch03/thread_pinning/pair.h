// What does it cost when the scheduler may move the threads that wake up for every step?
#pragma once
#include <cstdint>

namespace gauntlet::ch03::thread_pinning {

struct Params {
  const std::uint32_t* in;      // [workers, words]
  const std::uint32_t* factor;  // [steps]
  std::uint32_t* out;           // [workers, words]
  std::int64_t workers;
  std::int64_t words;
  std::int64_t steps;
};

/// Odd: a product of many even ones is zero, whatever the inputs were.
inline std::uint32_t factor_of(const Params& p, std::int64_t step) { return p.factor[step] | 1; }

/// One step of one worker over its part, which its second-level cache holds from step to step.
inline void step(const Params& p, std::int64_t worker, std::int64_t number) {
  const std::uint32_t* from = (number == 0 ? p.in : p.out) + worker * p.words;
  std::uint32_t* to = p.out + worker * p.words;
  const std::uint32_t factor = factor_of(p, number);
  for (std::int64_t i = 0; i < p.words; ++i) to[i] = from[i] * factor + 1;
}

}  // namespace gauntlet::ch03::thread_pinning
