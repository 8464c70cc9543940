// What is gained when the stages of a pipeline, none of which can be split, work at the same time?
#pragma once
#include <algorithm>
#include <cstdint>

namespace gauntlet::ch11::producer_consumer {

constexpr std::int64_t kWidth = 128;
constexpr std::int64_t kPacketSteps = 64;  // that a stage hands over at a time
constexpr std::int64_t kPacketBytes = kPacketSteps * kWidth;
constexpr int kShift = 10;  // leaves sums of random weights about as large as what was summed

/// A recurrent network of two layers with 8-bit weights and states. A step of a layer needs the
/// layer's step before, so that a layer goes through the sequence on one core.
struct Params {
  const std::int8_t* in;       // [steps, kWidth]
  const std::int8_t* weights;  // [2 layers, kWidth, 2 * kWidth]: of the input, then of the state
  std::int8_t* out;            // [steps, kWidth]
  std::int64_t steps;          // a multiple of kPacketSteps
};

/// A layer, which is a stage.
struct Layer {
  const std::int8_t* weights;       // [kWidth, 2 * kWidth]
  std::int16_t joined[2 * kWidth];  // input and state of the step at hand; wide, to be multiplied
};

inline Layer layer_of(const Params& p, int number) {
  return {.weights = p.weights + number * 2 * kWidth * kWidth, .joined = {}};
}

/// The steps of a packet.
inline void process_packet(Layer& layer, const std::int8_t* in, std::int8_t* out) {
  for (std::int64_t step = 0; step < kPacketSteps; ++step) {
    std::copy_n(in + step * kWidth, kWidth, layer.joined);
    std::int8_t* next = out + step * kWidth;
    for (std::int64_t row = 0; row < kWidth; ++row) {
      const std::int8_t* weights = layer.weights + row * 2 * kWidth;
      std::int32_t sum = 0;
      for (std::int64_t i = 0; i < 2 * kWidth; ++i) {
        sum += std::int32_t{weights[i]} * layer.joined[i];
      }
      next[row] = static_cast<std::int8_t>(std::clamp(sum >> kShift, -127, 127));
    }
    std::copy_n(next, kWidth, layer.joined + kWidth);
  }
}

}  // namespace gauntlet::ch11::producer_consumer
