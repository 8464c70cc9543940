// What products cost that no optimisation has touched: the shapes of gpt-oss-20b at one token and
// at more, and what a whole step of decoding spends on them.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/cuda/product_speed.h"
#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "core/random.h"
#include "kernels/cuda/plain_product.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::kernels::cuda;

constexpr std::int64_t kRotateBytes = 256 << 20;
constexpr int kLayers = 24;
constexpr int kExperts = 32;
constexpr int kExpertsPerToken = 4;

struct Work {
  const char* name;
  WeightFormat format;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t columns;
  int num_experts;
};

/// Random and finite, read as bf16 numbers or as FP4 with scales.
DeviceMemory random_bytes(std::int64_t bytes, WeightFormat format) {
  DeviceMemory memory(bytes);
  std::vector<std::uint16_t> pattern(1 << 22);
  const Random random(3);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const auto bits = random.bits(i);
    pattern[i] = static_cast<std::uint16_t>(
        format == WeightFormat::bf16 ? (bits & 0x81FF) | 0x3E00 : (bits & 0x0F0F) | 0x7070);
  }
  const auto chunk = static_cast<std::int64_t>(pattern.size() * 2);
  for (std::int64_t at = 0; at < bytes; at += chunk) {
    cuda_check(cudaMemcpy(memory.data() + at, pattern.data(),
                          static_cast<std::size_t>(std::min(chunk, bytes - at)),
                          cudaMemcpyHostToDevice));
  }
  return memory;
}

/// Slots per expert as a router deals them at random.
std::vector<std::int32_t> deal(const Work& w) {
  const auto matrices = static_cast<std::uint64_t>(std::max(1, w.num_experts));
  std::vector<std::int32_t> first(matrices + 1, 0);
  const Random random(11);
  for (std::int64_t i = 0; i < w.columns; ++i) {
    ++first[random.below(matrices, static_cast<std::uint64_t>(i)) + 1];
  }
  for (std::size_t e = 1; e < first.size(); ++e) first[e] += first[e - 1];
  return first;
}

double microseconds(const Work& w, PlainUnit unit) {
  const PlainMatrix shape{.format = w.format, .rows = w.rows, .cols = w.cols};
  const std::int64_t matrices = std::max(1, w.num_experts);
  const std::int64_t data_bytes = shape.data_bytes() * matrices;
  const std::int64_t scale_bytes = shape.scale_bytes() * matrices;
  const std::int64_t copies = kRotateBytes / data_bytes + 1;
  const DeviceMemory data = random_bytes(data_bytes * copies, w.format);
  const DeviceMemory scales = random_bytes(scale_bytes * copies, WeightFormat::mxfp4);
  const DeviceMemory x = random_bytes(w.columns * w.cols * 2, WeightFormat::bf16);
  const DeviceMemory bias = random_bytes(matrices * w.rows * 4, WeightFormat::bf16);
  const DeviceMemory out(w.columns * w.rows * 4);
  const auto first = deal(w);
  const DeviceMemory first_slot(static_cast<std::int64_t>(first.size()) * 4);
  cuda_check(cudaMemcpy(first_slot.data(), first.data(), first.size() * 4, cudaMemcpyHostToDevice));

  const CudaStream stream;
  const int launches = static_cast<int>(std::max<std::int64_t>(copies, 8));
  return gauntlet::bench::graph_microseconds(stream, launches, [&](int i) {
    plain_product(
        {.weights = {.format = w.format,
                     .rows = w.rows,
                     .cols = w.cols,
                     .data = data.data() + i % copies * data_bytes,
                     .scales = scales.data() + i % copies * scale_bytes},
         .x = reinterpret_cast<const __nv_bfloat16*>(x.data()),
         .x_stride = w.cols,
         .num_columns = w.columns,
         .bias = reinterpret_cast<const float*>(bias.data()),
         .out = reinterpret_cast<float*>(out.data()),
         .out_stride = w.rows,
         .groups = {.num_experts = w.num_experts,
                    .first_slot = reinterpret_cast<const std::int32_t*>(first_slot.data())}},
        unit, {.stream = stream});
  });
}

double report(const Work& w, PlainUnit unit) {
  const double us = microseconds(w, unit);
  const auto first = deal(w);
  double active = 0;
  for (std::size_t e = 0; e + 1 < first.size(); ++e) active += first[e + 1] > first[e] ? 1 : 0;
  const PlainMatrix shape{.format = w.format, .rows = w.rows, .cols = w.cols};
  const double bytes = active * static_cast<double>(shape.data_bytes() + shape.scale_bytes());
  const double flop = 2.0 * static_cast<double>(w.rows * w.cols * w.columns);
  std::printf("  %-8s %6lld x %4lld %6lld %10.1f us %7.1f TFLOP/s %5.2f TB/s\n", w.name,
              static_cast<long long>(w.rows), static_cast<long long>(w.cols),
              static_cast<long long>(w.columns), us, flop / us * 1e-6, bytes / us * 1e-6);
  std::fflush(stdout);
  return us;
}

void step(std::int64_t tokens, PlainUnit unit, WeightFormat experts) {
  const bool mxfp4 = experts == WeightFormat::mxfp4;
  std::printf("%lld tokens, %s, experts in %s\n", static_cast<long long>(tokens),
              unit == PlainUnit::tensor_cores ? "tensor cores" : "CUDA cores",
              mxfp4 ? "mxfp4" : "bf16");
  const auto bf16 = WeightFormat::bf16;
  const std::int64_t slots = tokens * kExpertsPerToken;
  const double layer = report({"qkv", bf16, 5120, 2880, tokens, 0}, unit) +
                       report({"attn out", bf16, 2880, 4096, tokens, 0}, unit) +
                       report({"gate_up", experts, 5760, 2880, slots, kExperts}, unit) +
                       report({"down", experts, 2880, 2880, slots, kExperts}, unit);
  // Many tokens are prompts, which need few logits.
  const std::int64_t logit_rows = std::min<std::int64_t>(tokens, 64);
  const double head = report({"lm_head", bf16, 201088, 2880, logit_rows, 0}, unit);
  const double ms = (kLayers * layer + head) * 1e-3;
  std::printf("  a step: %.2f ms, %.0f tokens/s\n", ms, static_cast<double>(tokens) / ms * 1e3);
}

}  // namespace

int main() {
  for (const WeightFormat experts : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    for (const PlainUnit unit : {PlainUnit::cuda_cores, PlainUnit::tensor_cores}) {
      for (const std::int64_t tokens : {1, 8, 64, 2048}) step(tokens, unit, experts);
    }
  }
  return 0;
}
