// What the model's experts and the machine's GPUs add to the metrics.
#include <algorithm>
#include <numeric>
#include <span>

#include "server/metrics/metrics.h"

namespace gauntlet::server::inline metrics {

void add_expert_metrics(PrometheusText& text, const std::vector<std::int64_t>& expert_tokens,
                        std::int64_t num_experts) {
  if (expert_tokens.empty() || num_experts <= 0) return;
  std::vector<Sample> tokens;
  std::vector<Sample> imbalance;
  for (std::int64_t layer = 0; layer < std::ssize(expert_tokens) / num_experts; ++layer) {
    const auto counts = std::span(expert_tokens).subspan(layer * num_experts, num_experts);
    for (std::int64_t e = 0; e < num_experts; ++e) {
      tokens.push_back({.labels = {{"layer", std::to_string(layer)}, {"expert", std::to_string(e)}},
                        .value = static_cast<double>(counts[e])});
    }
    const auto sum =
        static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    if (sum == 0) continue;
    const auto most = static_cast<double>(std::ranges::max(counts));
    imbalance.push_back({.labels = {{"layer", std::to_string(layer)}},
                         .value = most * static_cast<double>(num_experts) / sum});
  }
  text.counters("gauntlet:expert_tokens_total", "Tokens that the router sent to an expert.",
                tokens);
  text.gauges("gauntlet:router_imbalance",
              "Tokens of a layer's busiest expert over the mean of its experts, since the start; "
              "1 is even.",
              imbalance);
}

void add_gpu_metrics(PrometheusText& text, const std::vector<GpuSample>& gpus) {
  const auto add = [&](const char* name, const char* help, auto&& read) {
    std::vector<Sample> samples;
    for (const GpuSample& gpu : gpus) {
      const std::optional<double> value = read(gpu);
      if (!value) continue;
      samples.push_back({.labels = {{"gpu", std::to_string(gpu.index)}}, .value = *value});
    }
    text.gauges(name, help, samples);
  };
  const auto unless_zero = [](double value) {
    return value == 0 ? std::nullopt : std::optional(value);
  };
  add("gauntlet:gpu_utilization_ratio", "Part of the time in which a kernel ran.",
      [](const GpuSample& gpu) { return gpu.usage.busy; });
  add("gauntlet:gpu_memory_utilization_ratio", "Part of the time in which memory was accessed.",
      [](const GpuSample& gpu) { return gpu.usage.memory_busy; });
  add("gauntlet:gpu_memory_used_bytes", "Device memory in use, by all processes.",
      [](const GpuSample& gpu) { return gpu.usage.memory_used_bytes; });
  add("gauntlet:gpu_memory_total_bytes", "Device memory there is.",
      [](const GpuSample& gpu) { return gpu.usage.memory_total_bytes; });
  add("gauntlet:gpu_power_watts", "Power drawn.",
      [&](const GpuSample& gpu) { return unless_zero(gpu.state.power_w); });
  add("gauntlet:gpu_power_limit_watts", "Power that may be drawn.",
      [](const GpuSample& gpu) { return gpu.power_limit_w; });
  add("gauntlet:gpu_sm_clock_hertz", "Clock of the multiprocessors.",
      [&](const GpuSample& gpu) { return unless_zero(gpu.state.sm_clock_mhz * 1e6); });
  add("gauntlet:gpu_memory_clock_hertz", "Clock of the memory.",
      [&](const GpuSample& gpu) { return unless_zero(gpu.state.memory_clock_mhz * 1e6); });
  add("gauntlet:gpu_temperature_celsius", "Temperature of the GPU.",
      [&](const GpuSample& gpu) { return unless_zero(gpu.state.temperature_c); });
  add("gauntlet:gpu_thermal_slowdown", "1 while heat slows the GPU, else 0.",
      [](const GpuSample& gpu) {
        return std::optional<double>(gpu.state.thermal_slowdown ? 1.0 : 0.0);
      });
}

}  // namespace gauntlet::server::inline metrics
