#include "server/metrics/prometheus_text.h"

#include <fmt/format.h>

#include <iterator>

namespace gauntlet::server::inline metrics {
namespace {

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

void PrometheusText::begin(std::string_view name, std::string_view help, std::string_view type) {
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void PrometheusText::sample(std::string_view name, const Labels& labels, double value) {
  text_ += name;
  char before = '{';
  for (const Labels* some : std::initializer_list<const Labels*>{&common_, &labels}) {
    for (const auto& [key, word] : *some) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", before, key, escaped(word));
      before = ',';
    }
  }
  fmt::format_to(std::back_inserter(text_), "{} {}\n", before == '{' ? "" : "}", value);
}

void PrometheusText::counter(std::string_view name, std::string_view help, double value) {
  counters(name, help, {{.labels = {}, .value = value}});
}

void PrometheusText::gauge(std::string_view name, std::string_view help, double value) {
  gauges(name, help, {{.labels = {}, .value = value}});
}

void PrometheusText::counters(std::string_view name, std::string_view help,
                              const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  begin(name, help, "counter");
  for (const Sample& one : samples) sample(name, one.labels, one.value);
}

void PrometheusText::gauges(std::string_view name, std::string_view help,
                            const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  begin(name, help, "gauge");
  for (const Sample& one : samples) sample(name, one.labels, one.value);
}

void PrometheusText::histogram(std::string_view name, std::string_view help,
                               const Histogram& histogram) {
  begin(name, help, "histogram");
  const std::vector<std::int64_t> counts = histogram.counts();
  std::int64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const std::string bound =
        i < histogram.bounds().size() ? fmt::format("{}", histogram.bounds()[i]) : "+Inf";
    sample(fmt::format("{}_bucket", name), {{"le", bound}}, static_cast<double>(total));
  }
  sample(fmt::format("{}_sum", name), {}, histogram.sum());
  sample(fmt::format("{}_count", name), {}, static_cast<double>(total));
}

}  // namespace gauntlet::server::inline metrics
