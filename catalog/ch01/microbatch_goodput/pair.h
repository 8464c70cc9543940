// How many requests per second does a small network answer one at a time, and how many in
// micro-batches?
#pragma once
#include <cstdint>

namespace gauntlet::ch01::microbatch_goodput {

/// A two-layer perceptron: out = down · relu(up · in), for each request.
struct Params {
  const float* in;    // [requests, width]
  const float* up;    // [hidden, width]
  const float* down;  // [width, hidden]
  float* activation;  // [requests, hidden]
  float* out;         // [requests, width]
  std::int64_t requests;
  std::int64_t width;
  std::int64_t hidden;
};

}  // namespace gauntlet::ch01::microbatch_goodput
