// What happens in the server, counted by any thread, and all of it as the text that Prometheus
// reads: vLLM's names under our prefix, so that its dashboards need nothing but a rename.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/ranks/rank_pulse.h"
#include "engine/serving/service.h"
#include "server/metrics/account_counters.h"
#include "server/metrics/gpu_sampler.h"
#include "server/metrics/histogram.h"
#include "server/metrics/prometheus_text.h"

namespace gauntlet::server::inline metrics {

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
  AccountCounters accounts;

  void on_finish(const engine::FinishEvent& event);
};

/// What each rank of the model has done; empty until that is known.
using RankCounts = std::function<std::vector<engine::RankCounters>()>;

/// All that is shown at one moment.
struct MetricsView {
  const ServerMetrics& server;
  std::string model;
  engine::ServiceStats stats;
  std::int64_t num_experts = 0;
  std::vector<std::int64_t> expert_tokens;  // [layers, experts]; empty: not counted
  std::vector<GpuSample> gpus;
  std::vector<engine::RankCounters> ranks = {};  // where the model is on several
};
std::string render_metrics(const MetricsView& view);

/// Tokens by expert, and how uneven they are.
void add_expert_metrics(PrometheusText& text, const std::vector<std::int64_t>& expert_tokens,
                        std::int64_t num_experts);
/// Guesses and what became of them; by place once some were right.
void add_speculation_metrics(PrometheusText& text, const engine::SpeculationCounts& guessed);
/// By rank: steps, bytes to other ranks, time spent on waiting for them, memory.
void add_rank_metrics(PrometheusText& text, const std::vector<engine::RankCounters>& ranks);
/// What a GPU does not report is left out.
void add_gpu_metrics(PrometheusText& text, const std::vector<GpuSample>& gpus);
/// CPU time, memory and open files of this process, as Prometheus' own clients name them.
void add_process_metrics(PrometheusText& text);

}  // namespace gauntlet::server::inline metrics
