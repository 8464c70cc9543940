#include "bench/cuda/speed.h"

#include <cuda_bf16.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

#include "bench/cuda/yardstick.h"
#include "core/cuda/device.h"
#include "core/random.h"

namespace gauntlet::bench {
namespace {

constexpr int kRepeats = 7;
constexpr int kCopyLaunches = 8;

/// An event that keeps the time.
class Mark {
 public:
  Mark() { cuda_check(cudaEventCreate(&event_)); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream)); }
  double microseconds_since(const Mark& begin) const {
    float ms = 0;
    cuda_check(cudaEventSynchronize(event_));
    cuda_check(cudaEventElapsedTime(&ms, begin.event_, event_));
    return double{ms} * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Graph {
 public:
  Graph(cudaStream_t stream, int launches, const std::function<void(int, const Launch&)>& launch) {
    cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; ++i) {
      launch(i, {.stream = stream, .overlap = kernels::cuda::Overlap::dependent});
    }
    cudaGraph_t captured = nullptr;
    cuda_check(cudaStreamEndCapture(stream, &captured));
    const cudaError_t status = cudaGraphInstantiate(&replay_, captured, 0);
    cudaGraphDestroy(captured);
    cuda_check(status);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(replay_); }
  void replay(cudaStream_t stream) const { cuda_check(cudaGraphLaunch(replay_, stream)); }

 private:
  cudaGraphExec_t replay_ = nullptr;
};

}  // namespace

Buffer::Buffer(std::int64_t bytes) : memory_(std::max<std::int64_t>(bytes, 16)) {
  cuda_check(cudaMemset(memory_.data(), 0, static_cast<std::size_t>(memory_.bytes())));
}

void Buffer::fill(std::span<const std::byte> pattern) {
  const auto bytes = static_cast<std::size_t>(memory_.bytes());
  std::size_t filled = std::min(pattern.size(), bytes);
  cuda_check(cudaMemcpy(memory_.data(), pattern.data(), filled, cudaMemcpyHostToDevice));
  while (filled > 0 && filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    cuda_check(cudaMemcpy(memory_.data() + filled, memory_.data(), more, cudaMemcpyDeviceToDevice));
    filled += more;
  }
  // Copies within the device do not wait; streams that do not block would run ahead of them.
  cuda_check(cudaDeviceSynchronize());
}

void Buffer::read(std::int64_t offset_bytes, std::span<std::byte> bytes) const {
  cuda_check(cudaDeviceSynchronize());
  cuda_check(cudaMemcpy(bytes.data(), memory_.data() + offset_bytes, bytes.size(),
                        cudaMemcpyDeviceToHost));
}

int rotation(std::int64_t bytes_of_a_launch) {
  const std::int64_t copies = kColdBytes / std::max<std::int64_t>(bytes_of_a_launch, 1) + 1;
  return static_cast<int>(std::clamp<std::int64_t>(copies, 2, kLaunches));
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed, float size) {
  const Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(-size, size, i);
  return values;
}

std::vector<std::uint16_t> random_bf16(std::int64_t count, std::uint64_t seed, float size) {
  const Random random(seed);
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = bf16_bits(random.uniform(-size, size, i));
  }
  return values;
}

std::uint16_t bf16_bits(float value) {
  const __nv_bfloat16 half = __float2bfloat16(value);
  std::uint16_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  return bits;
}

float bf16_float(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

std::vector<std::int64_t> spots(std::int64_t count) {
  std::vector<std::int64_t> chosen = {0};
  if (count > 2) chosen.push_back(count / 2);
  if (count > 1) chosen.push_back(count - 1);
  return chosen;
}

std::vector<double> row_of(const std::vector<float>& matrix, std::int64_t row, std::int64_t width) {
  const auto begin = matrix.begin() + row * width;
  return {begin, begin + width};
}

void expect_near(std::string_view what, double got, double wanted, double tolerance) {
  check(std::abs(got - wanted) <= tolerance,
        fmt::format("{} is wrong: {} instead of {}", what, got, wanted));
}

void expect_bf16(std::string_view what, std::uint16_t got, double wanted) {
  expect_near(what, bf16_float(got), wanted, 1e-5 + std::abs(wanted) / 250);
}

Bench::Bench(std::string_view gpu) : evictor_(kColdBytes), sink_(16) {
  cuda_check(cudaDeviceGetAttribute(&num_sms_, cudaDevAttrMultiProcessorCount, 0));
  const Buffer from(2 * kColdBytes), to(2 * kColdBytes);
  const Timed copy = time(kCopyLaunches, [&](int i, const Launch& how) {
    const std::int64_t half = i % 2 * kColdBytes;
    cuda_check(cudaMemcpyAsync(to.as<void>(half), from.as<void>(half), kColdBytes,
                               cudaMemcpyDeviceToDevice, how.stream));
  });
  copy_bytes_per_us_ = 2.0 * static_cast<double>(kColdBytes) / copy.us;
  nothing_us_ = time(kLaunches, [](int, const Launch& how) { launch_nothing(how); }).us;
  fmt::print("{}: a plain copy moves {:.2f} TB/s; a launch of nothing takes {:.2f} us\n", gpu,
             copy_bytes_per_us_ * 1e-6, nothing_us_);
  fmt::print("{:<22} {:<34} {:>10} {:>6} {:>10} {:>6}  {:>13} {:>8}\n", "kernel", "shape", "us",
             "spread", "kB", "TB/s", "of the copy", "TFLOP/s");
}

Timed Bench::time(int launches, const std::function<void(int, const Launch&)>& launch) const {
  const Graph graph(stream_, launches, launch);
  const Mark begin, end;
  std::vector<double> times;
  for (int i = 0; i <= kRepeats; ++i) {
    // While this runs the graph arrives, so that its launch is not timed.
    read_through(evictor_.as<void>(), kColdBytes, sink_.as<std::uint32_t>(), {.stream = stream_});
    begin.record(stream_);
    graph.replay(stream_);
    end.record(stream_);
    const double us = end.microseconds_since(begin);
    if (i > 0) times.push_back(us / launches);
  }
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  return {.us = median, .spread = (times.back() - times.front()) / median};
}

Timed Bench::report(const Kernel& kernel) const {
  kernel.launch(0, {.stream = stream_});
  stream_.wait();
  kernel.verify();
  const Timed timed = time(kernel.launches, kernel.launch);
  const std::string share =
      nothing_us_ > timed.us / 2
          ? "launch-bound"
          : fmt::format("{:.0f}%", 100 * kernel.bytes / timed.us / copy_bytes_per_us_);
  const std::string flops =
      kernel.flop > 0 ? fmt::format("{:.1f}", kernel.flop / timed.us * 1e-6) : "";
  std::string row =
      fmt::format("{:<22} {:<34} {:>10.2f} {:>5.1f}% {:>10.1f} {:>6.3f}  {:>13} {:>8} {}",
                  kernel.name, kernel.shape, timed.us, 100 * timed.spread, kernel.bytes * 1e-3,
                  kernel.bytes / timed.us * 1e-6, share, flops, kernel.remark);
  row.erase(row.find_last_not_of(' ') + 1);
  fmt::print("{}\n", row);
  std::fflush(stdout);
  return timed;
}

int run_on_gpu(const std::function<void(const Bench&)>& run) {
  try {
    const GpuQuery query = query_gpus();
    if (query.gpus.empty()) {
      fmt::print(stderr, "nothing was timed: {}\n", query.reason);
      return 3;
    }
    const Bench bench(query.gpus[0].name);
    run(bench);
    return 0;
  } catch (const Unavailable& lacking) {
    fmt::print(stderr, "nothing was timed: {}\n", lacking.what());
    return 3;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace gauntlet::bench
