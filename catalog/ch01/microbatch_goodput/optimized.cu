// 32 requests at a time: each weight that a lane has loaded is used for all of them.
#include <cuda_runtime.h>

#include <limits>

#include "catalog/ch01/microbatch_goodput/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch01::microbatch_goodput::cuda {
namespace {

constexpr int kMicroBatch = 32;
constexpr int kWarps = 8;
constexpr int kRowsPerWarp = 2;
constexpr int kRowsPerBlock = kWarps * kRowsPerWarp;
constexpr int kWarpStep = 32 * 4;  // inputs that a warp loads at once, 16 bytes per lane
static_assert(128 % kRowsPerBlock == 0 && 128 % kWarpStep == 0, "widths are multiples of 128");

struct Layer {
  const float* weights;  // [outputs, inputs]
  const float* in;       // [kMicroBatch, inputs]
  float* out;            // [kMicroBatch, outputs]
  std::int64_t inputs;
  std::int64_t outputs;
  float floor;  // results below it become it
};

__device__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(~0u, value, distance);
  }
  return value;
}

__global__ void __launch_bounds__(kWarps * 32) apply(Layer layer) {
  const int lane = threadIdx.x % 32;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / 32 * kRowsPerWarp;
  const float* weights = layer.weights + row * layer.inputs;

  float sums[kRowsPerWarp][kMicroBatch] = {};
  for (std::int64_t i = lane * 4; i < layer.inputs; i += kWarpStep) {
    float4 w[kRowsPerWarp];
    for (int r = 0; r < kRowsPerWarp; ++r) w[r] = load4(weights + r * layer.inputs + i);
#pragma unroll
    for (int request = 0; request < kMicroBatch; ++request) {
      const float4 x = load4(layer.in + request * layer.inputs + i);
      for (int r = 0; r < kRowsPerWarp; ++r) sums[r][request] = dot(w[r], x, sums[r][request]);
    }
  }
#pragma unroll
  for (int request = 0; request < kMicroBatch; ++request) {
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const float sum = warp_sum(sums[r][request]);
      if (lane == 0) layer.out[request * layer.outputs + row + r] = fmaxf(sum, layer.floor);
    }
  }
}

void launch(const Layer& layer, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(layer.outputs / kRowsPerBlock);
  apply<<<blocks, kWarps * 32, 0, stream>>>(layer);
  cuda_check(cudaGetLastError());
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    for (std::int64_t first = 0; first < p.requests; first += kMicroBatch) {
      launch({.weights = p.up,
              .in = p.in + first * p.width,
              .out = p.activation + first * p.hidden,
              .inputs = p.width,
              .outputs = p.hidden,
              .floor = 0},
             stream);
      launch({.weights = p.down,
              .in = p.activation + first * p.hidden,
              .out = p.out + first * p.width,
              .inputs = p.hidden,
              .outputs = p.width,
              .floor = std::numeric_limits<float>::lowest()},
             stream);
    }
  };
}

}  // namespace gauntlet::ch01::microbatch_goodput::cuda
