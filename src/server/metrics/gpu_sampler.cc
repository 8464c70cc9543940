#include "server/metrics/gpu_sampler.h"

#include <chrono>

namespace gauntlet::server::inline metrics {
namespace {

std::vector<GpuSample> read_all(const Nvml& nvml) {
  std::vector<GpuSample> samples;
  for (int gpu = 0; gpu < nvml.device_count(); ++gpu) {
    const auto state = nvml.state(gpu);
    const auto usage = nvml.usage(gpu);
    if (!state || !usage) continue;
    const auto limit = nvml.power_limit_w(gpu);
    samples.push_back({.index = gpu,
                       .state = *state,
                       .usage = *usage,
                       .power_limit_w = limit ? std::optional(*limit) : std::nullopt});
  }
  return samples;
}

}  // namespace

GpuSampler::GpuSampler(double period_s)
    : thread_([this, period_s](const std::stop_token& ends) { run(ends, period_s); }) {}

std::vector<GpuSample> GpuSampler::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void GpuSampler::run(const std::stop_token& ends, double period_s) {
  const auto nvml = Nvml::open();
  if (!nvml || (*nvml)->device_count() == 0) return;
  while (!ends.stop_requested()) {
    std::vector<GpuSample> samples = read_all(**nvml);
    std::unique_lock lock(mutex_);
    latest_ = std::move(samples);
    woken_.wait_for(lock, ends, std::chrono::duration<double>(period_s), [] { return false; });
  }
}

}  // namespace gauntlet::server::inline metrics
