// What does it cost to hand over many small matrix products one by one?
#pragma once
#include <cstdint>

namespace gauntlet::ch01::batched_gemm {

struct Params {
  const float* a;  // [batch, size, size]
  const float* b;  // [batch, size, size]
  float* c;        // [batch, size, size]
  std::int64_t batch;
  std::int64_t size;
};

}  // namespace gauntlet::ch01::batched_gemm
