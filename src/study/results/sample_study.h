// A study with made-up figures, for tests of what is written out of it.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/check.h"
#include "study/cells.h"
#include "study/results/assemble.h"

namespace gauntlet::study::inline results {

class SampleStudy {
 public:
  explicit SampleStudy(engine::Backend backend = engine::Backend::cpu) {
    facts.id = "study-sample";
    facts.command_line = "gauntlet analyze --quick";
    facts.machine.cpu = {.model = "Sample CPU", .cores = 2, .simd = {"avx2"}};
    facts.machine.no_gpu_reason = "no CUDA device";
    facts.build = {.version = "0.1.0", .commit = "abc123", .compiler = "GNU 12"};
    facts.doctor = {{"cpu", "governor", lab::doctor::Finding::Level::warn,
                     "the governor is powersave <b>", "cpupower frequency-set -g performance"}};
    facts.model = {.name = "sample-model",
                   .num_layers = kLayers,
                   .hidden = 64,
                   .intermediate = 64,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 16,
                   .num_experts = 8,
                   .experts_per_token = 2,
                   .vocab = 512,
                   .max_positions = 4096,
                   .sliding_window = 128,
                   .attention = model::alternating_attention(kLayers)};
    facts.weights = "files";
    facts.profile = "minimal";
    facts.ladder = ladder_for(backend);
    facts.sizes = sizes_for(Depth::quick, backend, facts.model, 0);
  }

  StudyFacts facts;

  /// Every planned cell with a value.
  void fill(Journal& journal) {
    const auto cells = plan_cells(facts.ladder, facts.sizes, lab::ProfileLevel::minimal);
    facts.num_cells = cells.size();
    for (const Cell& cell : cells) {
      check(static_cast<bool>(journal.append(cell.key, value_of(cell.key))),
            "the sample's journal cannot be written");
    }
  }

 private:
  static constexpr int kLayers = 8;
  using json = nlohmann::json;

  static int number_in(const std::string& key) { return std::stoi(key.substr(key.find('/') + 1)); }

  /// Rounds of side a and a side b that is `gain` times faster, with a little noise.
  static json rounds(double ns, double gain) {
    json list = json::array();
    for (int i = 0; i < 5; ++i) {
      const double noise = 1 + 0.004 * ((i * 7) % 5 - 2);
      list.push_back({ns * noise, ns / gain, ns / gain * noise, ns});
    }
    return list;
  }

  json duel(double gain) const {
    json bouts = json::array();
    for (const Workload& workload : layer_workloads(facts.sizes)) {
      const double ns = 1e6 * std::sqrt(static_cast<double>(workload.test.batch)) * 20;
      bouts.push_back({{"name", workload.name},
                       {"batch", workload.test.batch},
                       {"context", workload.test.context},
                       {"tokens", workload.name == "prompt" ? workload.test.tokens : 4},
                       {"ns", rounds(ns, gain)},
                       {"bytes", {1e6, 5e5}},
                       {"limits",
                        {{{"seconds", ns * 1e-10}, {"bound_by", "memory"}},
                         {{"seconds", ns * 1e-10}, {"bound_by", "memory"}}}},
                       {"experts_per_layer", 3.5}});
    }
    const json side = {{"plan", {"threads: 1, pinned", "attention: naive, portable"}},
                       {"weight_bytes", 20 << 20},
                       {"read_from", "l2_read"}};
    json other = side;
    other["plan"][1] = "attention: flash, portable";
    return {{"a", side}, {"b", other}, {"bouts", std::move(bouts)}};
  }

  json energy(int layer) const {
    const auto point = [](const char* name, int batch, double joules) {
      return json{{"name", name},
                  {"batch", batch},
                  {"joules_per_token", joules},
                  {"watts", 60.0},
                  {"tokens", 650}};
    };
    json points = {point("decode_1", 1, 0.08 / (layer + 1)), point("decode_64", 64, 0.02)};
    if (facts.ladder.stage_of(layer) == Stage::serving) {
      points = json::array({point("served", 64, 0.03)});  // braces alone are a copy with clang
    }
    return {{"source", "RAPL: package-0"}, {"points", std::move(points)}};
  }

  static json outcome(double tok_s) {
    return {{"seconds", 1.5},
            {"requests", 32},
            {"output_tokens", 800},
            {"prompt_tokens", 4000},
            {"reused_tokens", 1200},
            {"tok_s", tok_s},
            {"requests_per_s", 21.0},
            {"ttft_ms", {{"p50", 40.0}, {"p95", 90.0}}},
            {"tpot_ms", {{"p50", 2.0}, {"p95", 5.0}}},
            {"answer_ms", {{"p50", 120.0}, {"p95", 240.0}}},
            {"mean_queue", 3.5},
            {"max_queue", 9}};
  }

  json serve_duel(double gain) const {
    const bool guesses = facts.ladder.all().contains("speculation");
    json bouts = json::array();
    for (const char* name : {"makespan", "first_token_p50", "answer_p50"}) {
      bouts.push_back({{"name", name}, {"ns", rounds(1e9, gain)}});
    }
    bouts.push_back({{"name", "between_tokens_p95"}, {"beside", true}, {"ns", rounds(1e7, 0.4)}});
    json after = outcome(500 * gain);
    if (guesses) {
      after["speculation"] = {
          {"steps", 100}, {"drafted", 300}, {"accepted", 90}, {"by_position", {50, 30, 10}}};
    }
    return {{"bouts", std::move(bouts)}, {"a", outcome(500)}, {"b", std::move(after)}};
  }

  json value_of(const std::string& key) const {
    const std::string kind = key.substr(0, key.find('/'));
    if (kind == "verify") {
      return {{"tokens", {{1, 2, 3}, {4, 5, 6}}},
              {"margins", {{1.0, 0.5, 0.3}, {0.4, 0.001, 2.0}}},
              {"perplexity", number_in(key) >= 5 ? 20.45 : 20.4},
              {"scored_tokens", 2048}};
    }
    if (kind == "energy") return energy(number_in(key));
    if (kind == "layer") {
      const int layer = number_in(key);
      if (facts.ladder.stage_of(layer) == Stage::serving) return serve_duel(1.6);
      return duel(layer == 3 ? 1.0 : 1.0 + 0.8 * layer);
    }
    if (key == keys::kTotal) return duel(14.5);
    if (kind == "without") {
      const Option& option = facts.ladder.option(key.substr(key.find('/') + 1));
      const double gain = option.id == "bf16_kv" ? 0.9 : option.layer == 3 ? 1.3 : 1.8;
      return option.stage == Stage::serving ? serve_duel(gain) : duel(gain);
    }
    if (kind == "load") {
      json value = outcome(700);
      value["of_saturation"] = std::stod(key.substr(5));
      value["offered_per_s"] = 21.0 * value["of_saturation"].get<double>();
      return value;
    }
    if (key == keys::kSaturation) return outcome(800);
    if (key == keys::kRouter) return router();
    if (key == keys::kTime) return time();
    if (kind == "context" && number_in(key) > 4096) {
      return {{"gap", "sample-model has 4096 positions"}};
    }
    return repeated(key, kind);
  }

  json router() const {
    json load = json::array(), uneven = json::array(), together = json::array();
    for (int layer = 0; layer < kLayers; ++layer) {
      json row = json::array(), pairs = json::array();
      for (int e = 0; e < 8; ++e) row.push_back(100 + 30 * ((e * 3 + layer) % 5));
      for (int i = 0; i < 64; ++i) pairs.push_back(i % 9 == 0 ? 0 : (i * 5) % 23);
      load.push_back(row);
      uneven.push_back(1.2 + 0.3 * layer);
      together.push_back({{"layer", layer}, {"counts", pairs}});
    }
    return {{"tokens", 640},          {"layers", kLayers},   {"experts", 8},
            {"experts_per_token", 2}, {"load", load},        {"imbalance", uneven},
            {"most_uneven_layer", 2}, {"together", together}};
  }

  static json time() {
    const auto split = [](int batch) {
      const auto part = [](const char* name, double us, double limit) {
        return json{{"name", name}, {"us", us}, {"limit_us", limit}, {"bound_by", "memory"}};
      };
      return json{
          {"batch", batch},
          {"context", 16},
          {"steps", 32},
          {"parts", {part("attention", 200, 80), part("experts", 400, 150), part("head", 90, 60)}},
          {"idle_us", 0.0},
          {"host_us", 10.0},
          {"step_us", 700.0},
          {"unwatched_step_us", 640.0}};
    };
    return {split(1), split(64)};
  }

  /// A test repeated on one stack: batches, prompts, contexts, precisions.
  static json repeated(const std::string& key, const std::string& kind) {
    json value = {{"batch", 4},
                  {"context", 16},
                  {"tokens", 8},
                  {"ms", {8.1, 8.0, 8.3, 7.9, 8.05, 8.2}},
                  {"limit_ms", 3.2},
                  {"bound_by", "memory"},
                  {"experts_per_layer", 2.5}};
    if (kind == "batch") value["batch"] = number_in(key);
    if (kind == "precision") {
      value["batch"] = 1;
      value["on"] = json::array();
      value["perplexity"] = 20.4 + 0.01 * static_cast<double>(key.size() % 7);
      value["scored_tokens"] = 2048;
      value["weight_bytes"] = (10 + static_cast<std::int64_t>(key.size() % 5)) << 20;
    }
    return value;
  }
};

}  // namespace gauntlet::study::inline results
