#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gauntlet::server {
namespace {

std::vector<double> first_token_bounds() {
  return {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
          1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
}

std::vector<double> token_gap_bounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
          0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
}

std::vector<double> request_time_bounds() {
  return {0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5,  5,   10,
          15,    20,   30,   40,  50,  60,  120, 240, 480, 960, 1920, 7680};
}

std::vector<double> token_count_bounds() {
  std::vector<double> bounds;
  for (double decade = 1; decade <= 1e5; decade *= 10) {
    for (const double step : {1, 2, 5}) bounds.push_back(decade * step);
  }
  return bounds;
}

std::vector<double> iteration_bounds() {
  return {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
}

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

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)),
      counts_(std::make_unique<std::atomic<std::int64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::int64_t> Histogram::counts() const {
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    counts.push_back(counts_[i].load(std::memory_order_relaxed));
  }
  return counts;
}

void PrometheusText::begin(std::string_view name, std::string_view help, std::string_view type) {
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void PrometheusText::sample(std::string_view name, const Labels& labels, double value) {
  std::string list;
  const auto add = [&](const Labels& some) {
    for (const auto& [key, word] : some) {
      list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", key, escaped(word));
    }
  };
  add(common_);
  add(labels);
  text_ += list.empty() ? fmt::format("{} {}\n", name, value)
                        : fmt::format("{}{{{}}} {}\n", name, list, value);
}

void PrometheusText::counter(std::string_view name, std::string_view help, double value) {
  begin(name, help, "counter");
  sample(name, {}, value);
}

void PrometheusText::gauge(std::string_view name, std::string_view help, double value) {
  begin(name, help, "gauge");
  sample(name, {}, value);
}

void PrometheusText::counters(std::string_view name, std::string_view help,
                              const std::string& label,
                              const std::vector<std::pair<std::string, double>>& values) {
  begin(name, help, "counter");
  for (const auto& [word, value] : values) sample(name, {{label, word}}, value);
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

ServerMetrics::ServerMetrics()
    : time_to_first_token_s(first_token_bounds()),
      inter_token_latency_s(token_gap_bounds()),
      time_per_output_token_s(token_gap_bounds()),
      e2e_latency_s(request_time_bounds()),
      queue_time_s(request_time_bounds()),
      prefill_time_s(request_time_bounds()),
      decode_time_s(request_time_bounds()),
      prompt_tokens(token_count_bounds()),
      generation_tokens(token_count_bounds()),
      iteration_tokens(iteration_bounds()) {}

void ServerMetrics::on_finish(const engine::FinishEvent& event) {
  finished[static_cast<int>(event.reason)].fetch_add(1, std::memory_order_relaxed);
  if (event.output_tokens == 0) return;
  queue_time_s.observe(event.queue_s);
  prefill_time_s.observe(event.prefill_s);
  decode_time_s.observe(event.decode_s);
  e2e_latency_s.observe(event.queue_s + event.prefill_s + event.decode_s);
  prompt_tokens.observe(static_cast<double>(event.prompt_tokens));
  generation_tokens.observe(static_cast<double>(event.output_tokens));
  if (event.output_tokens > 1) {
    time_per_output_token_s.observe(event.decode_s / static_cast<double>(event.output_tokens - 1));
  }
}

std::string render_metrics(const ServerMetrics& metrics, const engine::ServiceStats& stats,
                           const std::string& model) {
  PrometheusText text({{"model_name", model}});
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  text.gauge("gauntlet:num_requests_running", "Requests in the running batch.",
             real(stats.num_running));
  text.gauge("gauntlet:num_requests_waiting", "Requests that wait for their turn.",
             real(stats.num_waiting));
  text.gauge("gauntlet:kv_cache_usage_perc", "Part of the KV cache in use, 1 being all of it.",
             stats.kv_usage);
  text.counter("gauntlet:prefix_cache_queries_total",
               "Prompt tokens looked up in the prefix cache.",
               real(stats.scheduler.prefix_queries));
  text.counter("gauntlet:prefix_cache_hits_total", "Prompt tokens taken from the prefix cache.",
               real(stats.scheduler.prefix_hits));
  text.counter("gauntlet:num_preemptions_total", "Requests put back because pages ran out.",
               real(stats.scheduler.preemptions));
  text.counter("gauntlet:prompt_tokens_total", "Prompt tokens processed.",
               real(stats.prompt_tokens));
  text.counter("gauntlet:generation_tokens_total", "Tokens made.", real(stats.output_tokens));
  std::vector<std::pair<std::string, double>> by_reason;
  for (int i = 0; i < ServerMetrics::kNumReasons; ++i) {
    by_reason.emplace_back(engine::name_of(static_cast<engine::FinishReason>(i)),
                           real(metrics.finished[i].load(std::memory_order_relaxed)));
  }
  text.counters("gauntlet:request_success_total", "Choices that ended, by reason.",
                "finished_reason", by_reason);
  text.histogram("gauntlet:time_to_first_token_seconds", "From submission to the first token.",
                 metrics.time_to_first_token_s);
  text.histogram("gauntlet:inter_token_latency_seconds", "Between two tokens of a choice.",
                 metrics.inter_token_latency_s);
  text.histogram("gauntlet:request_time_per_output_token_seconds",
                 "Mean time per token after the first, by choice.",
                 metrics.time_per_output_token_s);
  text.histogram("gauntlet:e2e_request_latency_seconds", "From submission to the end.",
                 metrics.e2e_latency_s);
  text.histogram("gauntlet:request_queue_time_seconds", "From submission to the first step.",
                 metrics.queue_time_s);
  text.histogram("gauntlet:request_prefill_time_seconds", "From the first step to the first token.",
                 metrics.prefill_time_s);
  text.histogram("gauntlet:request_decode_time_seconds", "From the first token to the end.",
                 metrics.decode_time_s);
  text.histogram("gauntlet:request_prompt_tokens", "Prompt tokens by choice.",
                 metrics.prompt_tokens);
  text.histogram("gauntlet:request_generation_tokens", "Tokens made by choice.",
                 metrics.generation_tokens);
  text.histogram("gauntlet:iteration_tokens_total", "Tokens of one step.",
                 metrics.iteration_tokens);
  PrometheusText process({});
  add_process_metrics(process);
  return text.text() + process.text();
}

}  // namespace gauntlet::server
