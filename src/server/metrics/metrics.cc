#include "server/metrics/metrics.h"

#include "core/build_info.h"

namespace gauntlet::server::inline metrics {
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

/// vLLM's words, and one of ours for what it has not: a request that waited too long.
std::string_view reason_word(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::eos:
    case engine::FinishReason::stop:
      return "stop";
    case engine::FinishReason::length:
      return "length";
    case engine::FinishReason::cancelled:
      return "abort";
    case engine::FinishReason::expired:
      return "expired";
    case engine::FinishReason::failed:
      break;
  }
  return "error";
}

std::vector<Sample> by_reason(const ServerMetrics& metrics) {
  std::vector<Sample> samples;
  for (const char* word : {"stop", "length", "abort", "expired", "error"}) {
    std::int64_t count = 0;
    for (int i = 0; i < ServerMetrics::kNumReasons; ++i) {
      if (reason_word(static_cast<engine::FinishReason>(i)) != word) continue;
      count += metrics.finished[i].load(std::memory_order_relaxed);
    }
    samples.push_back({.labels = {{"finished_reason", word}}, .value = static_cast<double>(count)});
  }
  return samples;
}

}  // namespace

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

void add_speculation_metrics(PrometheusText& text, const engine::SpeculationCounts& guessed) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  text.counter("gauntlet:spec_decode_num_drafts_total", "Drafts that steps verified, by request.",
               real(guessed.steps));
  text.counter("gauntlet:spec_decode_num_draft_tokens_total", "Tokens guessed and verified.",
               real(guessed.drafted));
  text.counter("gauntlet:spec_decode_num_accepted_tokens_total", "Guesses that were right.",
               real(guessed.accepted));
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < guessed.by_position.size(); ++i) {
    samples.push_back(
        {.labels = {{"position", std::to_string(i)}}, .value = real(guessed.by_position[i])});
  }
  if (samples.empty()) return;
  text.counters("gauntlet:spec_decode_num_accepted_tokens_per_pos_total",
                "Guesses that were right, by their place in a draft.", samples);
}

std::string render_metrics(const MetricsView& view) {
  const engine::ServiceStats& stats = view.stats;
  const ServerMetrics& server = view.server;
  // One engine per process: vLLM's second label is always the same.
  PrometheusText text({{"model_name", view.model}, {"engine", "0"}});
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
  text.counter("gauntlet:delivery_cpu_seconds_total",
               "CPU time of the engine's thread in which it handed out tokens.",
               stats.delivery_cpu_s);
  add_speculation_metrics(text, stats.speculation);
  text.counters("gauntlet:request_success_total", "Choices that ended, by reason.",
                by_reason(server));
  text.histogram("gauntlet:time_to_first_token_seconds", "From submission to the first token.",
                 server.time_to_first_token_s);
  text.histogram("gauntlet:inter_token_latency_seconds", "Between two tokens of a choice.",
                 server.inter_token_latency_s);
  text.histogram("gauntlet:request_time_per_output_token_seconds",
                 "Mean time per token after the first, by choice.", server.time_per_output_token_s);
  text.histogram("gauntlet:e2e_request_latency_seconds", "From submission to the end.",
                 server.e2e_latency_s);
  text.histogram("gauntlet:request_queue_time_seconds", "From submission to the first step.",
                 server.queue_time_s);
  text.histogram("gauntlet:request_prefill_time_seconds", "From the first step to the first token.",
                 server.prefill_time_s);
  text.histogram("gauntlet:request_decode_time_seconds", "From the first token to the end.",
                 server.decode_time_s);
  text.histogram("gauntlet:request_prompt_tokens", "Prompt tokens by choice.",
                 server.prompt_tokens);
  text.histogram("gauntlet:request_generation_tokens", "Tokens made by choice.",
                 server.generation_tokens);
  text.histogram("gauntlet:iteration_tokens_total", "Tokens of one step.", server.iteration_tokens);
  add_account_metrics(text, server.accounts);
  add_expert_metrics(text, view.expert_tokens, view.num_experts);
  add_rank_metrics(text, view.ranks);

  PrometheusText machine({});
  const BuildInfo build = build_info();
  machine.gauges("gauntlet:build_info", "1; the labels say what was built.",
                 {{.labels = {{"version", build.version}, {"commit", build.commit}}, .value = 1}});
  add_gpu_metrics(machine, view.gpus);
  add_process_metrics(machine);
  return text.text() + machine.text();
}

}  // namespace gauntlet::server::inline metrics
