// What does it cost to wait for the GPU after every operation of a step?
#pragma once
#include <cstdint>

namespace gauntlet::ch01::sync_every_call {

/// A step is `layers` dependent operations: y = weights[layer] · y + biases[layer], element by
/// element.
struct Params {
  const float* in;       // [width]
  const float* weights;  // [layers, width]
  const float* biases;   // [layers, width]
  float* out;            // [width]
  std::int64_t layers;
  std::int64_t width;
};

}  // namespace gauntlet::ch01::sync_every_call
