// What the GPUs of this machine do, read by a thread of its own: NVML takes milliseconds, which no
// thread that serves has to spare.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/machine/nvml.h"

namespace gauntlet::server::inline metrics {

struct GpuSample {
  int index = 0;  // in PCI order
  GpuState state;
  GpuUsage usage;
  std::optional<double> power_limit_w;
};

class GpuSampler {
 public:
  explicit GpuSampler(double period_s = 1);

  /// Empty before the first reading, and for ever where there is no NVML or no GPU.
  std::vector<GpuSample> latest() const;

 private:
  void run(const std::stop_token& ends, double period_s);

  mutable std::mutex mutex_;
  std::condition_variable_any woken_;
  std::vector<GpuSample> latest_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace gauntlet::server::inline metrics
