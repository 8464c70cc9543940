// What does a sum over GPUs cost where the switch between them adds?
#pragma once
#include <cstdint>
#include <vector>

namespace gauntlet::ch04::nvls_collectives {

constexpr std::int64_t kPartWords = 1024;  // a GPU's part of a sum is a multiple of it
constexpr int kSums = 4;                   // one after the other: each adds up the one before

/// Everything begins and ends on the first GPU, which hands out the operands and collects what each
/// GPU has in the end.
struct Params {
  const float* in;           // [devices, words]
  float* out;                // [devices, words]: alike, of each GPU
  std::int64_t words;        // of an operand
  std::vector<int> devices;  // the first is the lab's

  std::int64_t part() const { return words / static_cast<std::int64_t>(devices.size()); }
};

}  // namespace gauntlet::ch04::nvls_collectives
