// What the speeds of products share: weights and tokens that rotate through more memory than L2
// holds, slots dealt as a router deals them, launches timed inside a graph.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/cuda/check.h"
#include "core/random.h"
#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product.h"

namespace gauntlet::bench {

using namespace kernels::cuda;

constexpr std::int64_t kRotateBytes = 256 << 20;
constexpr int kRepeats = 5;

struct Work {
  const char* name;
  WeightFormat format;
  Epilogue epilogue;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t columns;
  int num_experts;
};

class Buffer {
 public:
  explicit Buffer(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    cuda_check(cudaMalloc(&data_, bytes_));
    cuda_check(cudaMemset(data_, 0, bytes_));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }

  template <class T>
  T* as(std::int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(static_cast<std::uint8_t*>(data_) + offset_bytes);
  }
  /// Random and finite, read as bf16 numbers or as FP4 with scales: power depends on the bits that
  /// toggle.
  void randomize(WeightFormat format) {
    std::vector<std::uint16_t> pattern(1 << 22);
    const Random random(3);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const auto bits = random.bits(i);
      pattern[i] = static_cast<std::uint16_t>(
          format == WeightFormat::bf16 ? (bits & 0x81FF) | 0x3E00 : (bits & 0x8F8F) | 0x3030);
    }
    const std::size_t chunk = pattern.size() * 2;
    for (std::size_t at = 0; at < bytes_; at += chunk) {
      cuda_check(cudaMemcpy(as<void>(static_cast<std::int64_t>(at)), pattern.data(),
                            std::min(chunk, bytes_ - at), cudaMemcpyHostToDevice));
    }
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// Slots per expert as a router deals them: each token goes to a random expert.
inline std::vector<std::int32_t> deal(const Work& w) {
  std::vector<std::int32_t> first(static_cast<std::size_t>(w.num_experts) + 1, 0);
  const Random random(11);
  for (std::int64_t i = 0; i < w.columns; ++i) {
    const auto expert =
        random.below(static_cast<std::uint64_t>(w.num_experts), static_cast<std::uint64_t>(i));
    ++first[expert + 1];
  }
  for (std::size_t e = 1; e < first.size(); ++e) first[e] += first[e - 1];
  return first;
}

/// Microseconds of one of so many launches, captured together and replayed.
inline double graph_microseconds(cudaStream_t stream, int launches,
                                 const std::function<void(int)>& once) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; ++i) once(i);
  cuda_check(cudaStreamEndCapture(stream, &graph));
  cuda_check(cudaGraphInstantiate(&replay, graph, 0));
  cudaEvent_t begin = nullptr, end = nullptr;
  cuda_check(cudaEventCreate(&begin));
  cuda_check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i <= kRepeats; ++i) {
    cuda_check(cudaEventRecord(begin, stream));
    cuda_check(cudaGraphLaunch(replay, stream));
    cuda_check(cudaEventRecord(end, stream));
    cuda_check(cudaEventSynchronize(end));
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, begin, end));
    if (i > 0) times.push_back(ms);
  }
  std::ranges::sort(times);
  cuda_check(cudaGraphExecDestroy(replay));
  cuda_check(cudaGraphDestroy(graph));
  cuda_check(cudaEventDestroy(begin));
  cuda_check(cudaEventDestroy(end));
  return double{times[times.size() / 2]} * 1e3 / launches;
}

/// Microseconds of one launch; `launch` gets a product whose weights rotate, and the stream.
inline double microseconds(const Work& w,
                           const std::function<void(const Product&, const Launch&)>& launch) {
  const FragmentMatrix shape{.format = w.format, .rows = w.rows, .cols = w.cols};
  const std::int64_t experts = std::max(1, w.num_experts);
  const std::int64_t weight_bytes = shape.bytes() * experts;
  const std::int64_t x_stride = shape.col_blocks() * kBlockCols;
  const std::int64_t copies = std::max<std::int64_t>(1, kRotateBytes / weight_bytes + 1);
  Buffer weights(weight_bytes * copies);
  weights.randomize(w.format);
  Buffer x(w.columns * x_stride * 2);
  x.randomize(WeightFormat::bf16);
  const std::int64_t features = w.epilogue == Epilogue::swiglu_bf16 ? w.rows / 2 : w.rows;
  Buffer out(w.columns * features * 4);
  Buffer bias(experts * shape.row_blocks() * kBlockRows * 4);
  Buffer slot_weight(w.columns * 4);
  Buffer slot_row(w.columns * 4), first_slot((experts + 1) * 4);
  std::vector<std::int32_t> rows(static_cast<std::size_t>(w.columns));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
  cuda_check(cudaMemcpy(slot_row.as<void>(), rows.data(), rows.size() * 4, cudaMemcpyHostToDevice));
  if (w.num_experts > 0) {
    const auto first = deal(w);
    cuda_check(
        cudaMemcpy(first_slot.as<void>(), first.data(), first.size() * 4, cudaMemcpyHostToDevice));
  }

  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreate(&stream));
  const int launches = static_cast<int>(std::max<std::int64_t>(copies, 8));
  const auto once = [&](int i) {
    const Product product{
        .weights = {.format = w.format,
                    .rows = w.rows,
                    .cols = w.cols,
                    .data = weights.as<std::uint8_t>(i % copies * weight_bytes)},
        .x = x.as<__nv_bfloat16>(),
        .x_stride = x_stride,
        .num_columns = w.columns,
        .bias = bias.as<float>(),
        .epilogue = w.epilogue,
        .out = out.as<void>(),
        .out_stride = features,
        .groups = {.num_experts = w.num_experts,
                   .first_slot = w.num_experts > 0 ? first_slot.as<std::int32_t>() : nullptr,
                   .slot_row = slot_row.as<std::int32_t>(),
                   .slot_weight = slot_weight.as<float>()}};
    launch(product, {.stream = stream, .overlap = Overlap::dependent});
  };
  const double us = graph_microseconds(stream, launches, once);
  cuda_check(cudaStreamDestroy(stream));
  return us;
}

/// Experts that got a slot; 1 of a plain product.
inline double active_experts(const Work& w) {
  if (w.num_experts == 0) return 1;
  const auto first = deal(w);
  double active = 0;
  for (std::size_t e = 0; e + 1 < first.size(); ++e) active += first[e + 1] > first[e] ? 1 : 0;
  return active;
}

}  // namespace gauntlet::bench
