// The text that Prometheus reads: its exposition format, version 0.0.4.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/metrics/histogram.h"

namespace gauntlet::server::inline metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  Labels labels;
  double value = 0;
};

class PrometheusText {
 public:
  /// The labels that every sample has.
  explicit PrometheusText(Labels common) : common_(std::move(common)) {}

  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);
  /// One sample per set of labels. A family without samples is left out.
  void counters(std::string_view name, std::string_view help, const std::vector<Sample>& samples);
  void gauges(std::string_view name, std::string_view help, const std::vector<Sample>& samples);
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);
  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);
  void sample(std::string_view name, const Labels& labels, double value);

  Labels common_;
  std::string text_;
};

}  // namespace gauntlet::server::inline metrics
