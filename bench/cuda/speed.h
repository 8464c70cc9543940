// What every benchmark of a kernel shares: memory that launches rotate through, a first launch that
// is compared with its definition, launches timed inside a graph, one form of row.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cuda/memory.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::bench {

using kernels::cuda::Launch;

/// gpt-oss-20b.
inline constexpr std::int64_t kHidden = 2880;
inline constexpr std::int64_t kVocab = 201088;
inline constexpr int kExperts = 32;
inline constexpr int kExpertsPerToken = 4;
inline constexpr int kHeads = 64;
inline constexpr int kKvHeads = 8;
inline constexpr std::array<std::int64_t, 4> kBatches = {1, 8, 64, 2048};

/// Several times the L2: what comes back after so much else has gone by is cold.
inline constexpr std::int64_t kColdBytes = std::int64_t{256} << 20;
inline constexpr int kLaunches = 128;

/// Device memory that starts as zeros, or as a pattern that is repeated to its end.
class Buffer {
 public:
  explicit Buffer(std::int64_t bytes);
  template <class T>
  Buffer(std::int64_t bytes, const std::vector<T>& pattern) : Buffer(bytes) {
    fill(std::as_bytes(std::span(pattern)));
  }
  template <class T>
  explicit Buffer(const std::vector<T>& values)
      : Buffer(static_cast<std::int64_t>(values.size() * sizeof(T)), values) {}

  template <class T>
  T* as(std::int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(memory_.data() + offset_bytes);
  }
  /// The first so many elements.
  template <class T>
  std::vector<T> values(std::int64_t count) const {
    std::vector<T> result(static_cast<std::size_t>(count));
    read(0, std::as_writable_bytes(std::span(result)));
    return result;
  }
  template <class T>
  T value(std::int64_t index) const {
    std::array<T, 1> result;
    read(index * static_cast<std::int64_t>(sizeof(T)), std::as_writable_bytes(std::span(result)));
    return result[0];
  }

 private:
  void fill(std::span<const std::byte> pattern);
  void read(std::int64_t offset_bytes, std::span<std::byte> bytes) const;

  DeviceMemory memory_;
};

/// How many launches get memory of their own: until together it exceeds the L2, and no more than a
/// graph has.
int rotation(std::int64_t bytes_of_a_launch);

/// An array for each launch of a rotation, each beginning with the same values.
template <class T>
class PerLaunch {
 public:
  PerLaunch(int copies, std::int64_t count)
      : copies_(copies), count_(count), stride_(stride(count)), buffer_(copies * stride_) {}
  PerLaunch(int copies, std::vector<T> values)
      : copies_(copies),
        count_(static_cast<std::int64_t>(values.size())),
        stride_(stride(count_)),
        buffer_(copies * stride_, padded(std::move(values))) {}

  T* at(int launch) const { return as<T>(launch); }
  template <class As>
  As* as(int launch) const {
    return buffer_.as<As>(launch % copies_ * stride_);
  }
  /// What the first launch left.
  std::vector<T> first() const { return buffer_.values<T>(count_); }

 private:
  static constexpr std::int64_t kAlignment = 256;
  static_assert(kAlignment % sizeof(T) == 0);
  static std::int64_t stride(std::int64_t count) {
    return (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment *
           kAlignment;
  }
  static std::vector<T> padded(std::vector<T> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    values.resize(static_cast<std::size_t>(stride(count)) / sizeof(T));
    return values;
  }

  int copies_;
  std::int64_t count_;
  std::int64_t stride_;  // bytes
  Buffer buffer_;
};

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed, float size = 1);
std::vector<std::uint16_t> random_bf16(std::int64_t count, std::uint64_t seed, float size = 1);
std::uint16_t bf16_bits(float value);
float bf16_float(std::uint16_t bits);

/// The first, the middle and the last of so many.
std::vector<std::int64_t> spots(std::int64_t count);
std::vector<double> row_of(const std::vector<float>& matrix, std::int64_t row, std::int64_t width);

/// A benchmark of a wrong kernel must fail: throws Fault, for NaN too.
void expect_near(std::string_view what, double got, double wanted, double tolerance);
/// Within a rounding to bf16.
void expect_bf16(std::string_view what, std::uint16_t got, double wanted);

/// Microseconds of one launch: the median of the replays, and the distance from the fastest to the
/// slowest as a part of it.
struct Timed {
  double us = 0;
  double spread = 0;
};

/// A kernel at a shape.
struct Kernel {
  std::string name;
  std::string shape;
  double bytes = 0;  // that it must read and write, each once
  double flop = 0;   // 0: not its measure
  int launches = kLaunches;
  std::function<void(int, const Launch&)> launch;  // gets the number of the launch in the graph
  std::function<void()> verify;  // called after launch 0 has run alone; throws if it was wrong
  std::string remark = {};
};

class Bench {
 public:
  /// Measures the yardsticks, a plain copy and a launch of nothing, and prints them.
  explicit Bench(std::string_view gpu);
  int num_sms() const { return num_sms_; }
  Timed time(int launches, const std::function<void(int, const Launch&)>& launch) const;
  /// Launches once, verifies, times, prints a row.
  Timed report(const Kernel& kernel) const;

 private:
  int num_sms_ = 0;
  CudaStream stream_;
  Buffer evictor_, sink_;
  double copy_bytes_per_us_ = 0;
  double nothing_us_ = 0;
};

/// Thrown where this GPU lacks what the kernel needs.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// main() of a benchmark: 0; 3 with one sentence where there is no GPU, or not the one needed; 1
/// where a result is wrong or CUDA fails.
int run_on_gpu(const std::function<void(const Bench&)>& run);

}  // namespace gauntlet::bench
