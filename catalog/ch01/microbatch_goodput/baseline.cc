// One request after the other: each walks through all weights.
#include <algorithm>
#include <limits>

#include "catalog/ch01/microbatch_goodput/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch01::microbatch_goodput::cpu {
namespace {

constexpr std::int64_t kMicroBatch = 1;
// Independent partial sums: four vectors of eight hide the latency of a fused multiply-add.
constexpr int kLanes = 32;

struct Layer {
  const float* weights;  // [outputs, inputs]
  const float* in;       // [requests, inputs]
  float* out;            // [requests, outputs]
  std::int64_t inputs;
  std::int64_t outputs;
  float floor;  // results below it become it
};

float dot(const float* a, const float* b, std::int64_t count) {
  float lanes[kLanes] = {};
  for (std::int64_t i = 0; i < count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

void apply(const Layer& layer) {
  for (std::int64_t row = 0; row < layer.outputs; ++row) {
    for (std::int64_t request = 0; request < kMicroBatch; ++request) {
      const float sum =
          dot(layer.weights + row * layer.inputs, layer.in + request * layer.inputs, layer.inputs);
      layer.out[request * layer.outputs + row] = std::max(sum, layer.floor);
    }
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t first = 0; first < p.requests; first += kMicroBatch) {
      apply({.weights = p.up,
             .in = p.in + first * p.width,
             .out = p.activation + first * p.hidden,
             .inputs = p.width,
             .outputs = p.hidden,
             .floor = 0});
      apply({.weights = p.down,
             .in = p.activation + first * p.hidden,
             .out = p.out + first * p.width,
             .inputs = p.hidden,
             .outputs = p.width,
             .floor = std::numeric_limits<float>::lowest()});
    }
  };
}

}  // namespace gauntlet::ch01::microbatch_goodput::cpu
