// What does it cost to let a kernel fault managed pages in, instead of moving them ahead of it?
#pragma once
#include <cstdint>

namespace gauntlet::ch06::managed_prefetch {

struct Params {
  const float* in;  // [count], managed; its pages are on the host before each run
  float* out;       // [count], on the device
  std::int64_t count;
};

}  // namespace gauntlet::ch06::managed_prefetch
