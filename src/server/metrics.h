// Counts and distributions that any thread adds to, and the text that Prometheus reads.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/service.h"

namespace gauntlet::server {

class Histogram {
 public:
  /// Upper bounds, rising; what is above all of them counts as infinite.
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  /// One per bound and one above them, each on its own (not summed up).
  std::vector<std::int64_t> counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<std::int64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

using Labels = std::vector<std::pair<std::string, std::string>>;

/// The text exposition format, version 0.0.4.
class PrometheusText {
 public:
  /// The labels that every sample has.
  explicit PrometheusText(Labels common) : common_(std::move(common)) {}

  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);
  /// A counter with one sample per value of a label.
  void counters(std::string_view name, std::string_view help, const std::string& label,
                const std::vector<std::pair<std::string, double>>& values);
  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);
  void sample(std::string_view name, const Labels& labels, double value);

  Labels common_;
  std::string text_;
};

/// What vLLM's dashboards ask for, under our prefix.
struct ServerMetrics {
  ServerMetrics();

  Histogram time_to_first_token_s;
  Histogram inter_token_latency_s;
  Histogram time_per_output_token_s;
  Histogram e2e_latency_s;
  Histogram queue_time_s;
  Histogram prefill_time_s;
  Histogram decode_time_s;
  Histogram prompt_tokens;
  Histogram generation_tokens;
  Histogram iteration_tokens;
  static constexpr int kNumReasons = 6;  // of engine::FinishReason
  std::atomic<std::int64_t> finished[kNumReasons] = {};

  void on_finish(const engine::FinishEvent& event);
};

std::string render_metrics(const ServerMetrics& metrics, const engine::ServiceStats& stats,
                           const std::string& model);

/// CPU time, memory and open files of this process, as Prometheus' own clients name them.
void add_process_metrics(PrometheusText& text);

}  // namespace gauntlet::server
