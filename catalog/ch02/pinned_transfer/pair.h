// What does the copy engine gain when it may read host memory by itself?
#pragma once
#include <cstdint>

namespace gauntlet::ch02::pinned_transfer {

struct Params {
  const std::uint32_t* in;  // [words], on the device
  std::uint32_t* out;       // [words], on the device: what went to the host and came back
  std::int64_t words;
};

}  // namespace gauntlet::ch02::pinned_transfer
