// Is what Prometheus reads well-formed, complete, and what happened?
#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/metrics/prometheus_parser.h"

namespace gauntlet::server::inline metrics {
namespace {

using ::testing::HasSubstr;

/// Everything that a server can show, on two GPUs and two layers of four experts.
MetricsView full_view(const ServerMetrics& server, const std::string& model = "tiny") {
  const GpuState hot{.sm_clock_mhz = 1980,
                     .memory_clock_mhz = 3201,
                     .power_w = 612.5,
                     .temperature_c = 71,
                     .thermal_slowdown = true,
                     .throttle_reasons = {}};
  return {
      .server = server,
      .model = model,
      .stats = {.num_running = 3,
                .num_waiting = 4,
                .kv_usage = 0.25,
                .scheduler = {.preemptions = 5, .prefix_queries = 100, .prefix_hits = 60},
                .steps = 9,
                .prompt_tokens = 1000,
                .output_tokens = 2000,
                .last_step_tokens = 7,
                .speculation = {.steps = 4, .drafted = 12, .accepted = 5, .by_position = {3, 2}}},
      .num_experts = 4,
      .expert_tokens = {1, 2, 3, 6, 0, 0, 0, 0},
      .gpus = {{.index = 0,
                .state = hot,
                .usage = {.busy = 0.93,
                          .memory_busy = 0.4,
                          .memory_used_bytes = 1e9,
                          .memory_total_bytes = 141e9},
                .power_limit_w = 700.0},
               {.index = 1, .state = {}, .usage = {}, .power_limit_w = {}}}};
}

Exposition exposed(const MetricsView& view) { return Exposition(render_metrics(view)); }

TEST(Metrics, have_every_name_and_type_that_dashboards_of_vllm_ask_for) {
  const ServerMetrics server;
  const Exposition text = exposed(full_view(server));
  const std::map<std::string, std::string> wanted = {
      {"num_requests_running", "gauge"},
      {"num_requests_waiting", "gauge"},
      {"kv_cache_usage_perc", "gauge"},
      {"prefix_cache_queries_total", "counter"},
      {"prefix_cache_hits_total", "counter"},
      {"num_preemptions_total", "counter"},
      {"spec_decode_num_drafts_total", "counter"},
      {"spec_decode_num_draft_tokens_total", "counter"},
      {"spec_decode_num_accepted_tokens_total", "counter"},
      {"spec_decode_num_accepted_tokens_per_pos_total", "counter"},
      {"prompt_tokens_total", "counter"},
      {"generation_tokens_total", "counter"},
      {"request_success_total", "counter"},
      {"time_to_first_token_seconds", "histogram"},
      {"inter_token_latency_seconds", "histogram"},
      {"request_time_per_output_token_seconds", "histogram"},
      {"e2e_request_latency_seconds", "histogram"},
      {"request_queue_time_seconds", "histogram"},
      {"request_prefill_time_seconds", "histogram"},
      {"request_decode_time_seconds", "histogram"},
      {"request_prompt_tokens", "histogram"},
      {"request_generation_tokens", "histogram"},
      {"iteration_tokens_total", "histogram"},
      {"expert_tokens_total", "counter"},
      {"router_imbalance", "gauge"}};
  for (const auto& [name, type] : wanted) {
    ASSERT_TRUE(text.families().contains("gauntlet:" + name)) << name;
    const ExposedFamily& family = text.family("gauntlet:" + name);
    EXPECT_EQ(family.type, type) << name;
    for (const ExposedSample& sample : family.samples) {
      EXPECT_EQ(sample.labels.at("model_name"), "tiny") << name;
      EXPECT_EQ(sample.labels.at("engine"), "0") << name;
    }
  }
}

TEST(Metrics, end_counters_in_total_and_nothing_else_but_vllms_own_exception) {
  const ServerMetrics server;
  const Exposition text = exposed(full_view(server));
  for (const auto& [name, family] : text.families()) {
    if (name == "gauntlet:iteration_tokens_total") continue;
    EXPECT_EQ(name.ends_with("_total"), family.type == "counter") << name;
  }
}

TEST(Metrics, have_histograms_that_rise_to_their_count) {
  ServerMetrics server;
  for (const double value : {0.0, 0.001, 0.0011, 3.0, 1e9}) {
    server.time_to_first_token_s.observe(value);
  }
  server.time_to_first_token_s.observe(std::numeric_limits<double>::quiet_NaN());
  const Exposition text = exposed(full_view(server));
  for (const auto& [name, family] : text.families()) {
    if (family.type != "histogram") continue;
    double bound = -1, count = 0;
    for (const ExposedSample& sample : family.samples) {
      if (!sample.name.ends_with("_bucket")) continue;
      const std::string& le = sample.labels.at("le");
      const double next = le == "+Inf" ? std::numeric_limits<double>::infinity() : std::stod(le);
      EXPECT_GT(next, bound) << name;
      EXPECT_GE(sample.value, count) << name;
      bound = next;
      count = sample.value;
    }
    EXPECT_EQ(bound, std::numeric_limits<double>::infinity()) << name;
    EXPECT_EQ(text.value(name + "_count"), count) << name;
    EXPECT_NO_THROW(text.value(name + "_sum")) << name;
  }
  const std::string ttft = "gauntlet:time_to_first_token_seconds";
  EXPECT_EQ(text.value(ttft + "_count"), 5) << "what is no number is not counted";
  EXPECT_EQ(text.value(ttft + "_bucket", {{"le", "0.001"}}), 2) << "a bound holds its own value";
  EXPECT_EQ(text.value(ttft + "_bucket", {{"le", "2560"}}), 4);
}

TEST(Metrics, count_endings_in_vllms_words) {
  ServerMetrics server;
  using enum engine::FinishReason;
  for (const auto reason : {eos, stop, length, cancelled, expired, failed}) {
    server.on_finish({.reason = reason, .error = "", .output_tokens = 2, .decode_s = 0.5});
  }
  const Exposition text = exposed(full_view(server));
  const auto ended = [&](const char* word) {
    return text.value("gauntlet:request_success_total", {{"finished_reason", word}});
  };
  EXPECT_EQ(ended("stop"), 2);
  EXPECT_EQ(ended("length"), 1);
  EXPECT_EQ(ended("abort"), 1);
  EXPECT_EQ(ended("expired"), 1);
  EXPECT_EQ(ended("error"), 1);
  EXPECT_EQ(text.value("gauntlet:request_time_per_output_token_seconds_sum"), 3);
}

TEST(Metrics, tell_how_uneven_the_router_is_once_it_has_routed) {
  const ServerMetrics server;
  MetricsView view = full_view(server);
  const Exposition text = exposed(view);
  EXPECT_EQ(text.value("gauntlet:expert_tokens_total", {{"layer", "0"}, {"expert", "3"}}), 6);
  EXPECT_EQ(text.family("gauntlet:expert_tokens_total").samples.size(), 8u);
  EXPECT_EQ(text.value("gauntlet:router_imbalance", {{"layer", "0"}}), 2);
  EXPECT_EQ(text.family("gauntlet:router_imbalance").samples.size(), 1u);
  view.expert_tokens.clear();
  EXPECT_FALSE(exposed(view).families().contains("gauntlet:expert_tokens_total"));
}

TEST(Metrics, leave_out_what_a_gpu_does_not_report) {
  const ServerMetrics server;
  MetricsView view = full_view(server);
  const Exposition text = exposed(view);
  EXPECT_EQ(text.value("gauntlet:gpu_utilization_ratio", {{"gpu", "0"}}), 0.93);
  EXPECT_EQ(text.value("gauntlet:gpu_sm_clock_hertz"), 1980e6);
  EXPECT_EQ(text.value("gauntlet:gpu_power_watts"), 612.5);
  EXPECT_EQ(text.family("gauntlet:gpu_power_watts").samples.size(), 1u);
  EXPECT_EQ(text.family("gauntlet:gpu_thermal_slowdown").samples.size(), 2u);
  view.gpus.clear();
  EXPECT_THAT(render_metrics(view), Not(HasSubstr("gpu_")));
}

TEST(Metrics, stay_well_formed_whatever_the_model_is_called) {
  const ServerMetrics server;
  const Exposition text = exposed(full_view(server, "a\"b\\c\nd{e}=,"));
  EXPECT_EQ(text.family("gauntlet:num_requests_running").samples[0].labels.at("model_name"),
            "a\\\"b\\\\c\\nd{e}=,");
}

TEST(Metrics, tell_of_this_process) {
  const ServerMetrics server;
  const Exposition text = exposed(full_view(server));
  EXPECT_GT(text.value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(text.value("process_virtual_memory_bytes"),
            text.value("process_resident_memory_bytes"));
  EXPECT_GE(text.value("process_threads"), 1);
  EXPECT_GE(text.value("process_open_fds"), 3);
  EXPECT_GE(text.value("process_max_fds"), text.value("process_open_fds"));
  EXPECT_GT(text.value("process_start_time_seconds"), 1.6e9);
}

TEST(GpuSampler, starts_and_ends_at_once_with_and_without_a_gpu) {
  const GpuSampler sampler(3600);
  EXPECT_LE(sampler.latest().size(), 64u);
}

}  // namespace
}  // namespace gauntlet::server::inline metrics
