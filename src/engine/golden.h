// The golden values of tests/golden and what it means to match them; see the README there.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/os/files.h"
#include "engine/steps/cpu_executor.h"
#include "engine/test_run.h"
#include "model/convert.h"
#include "model/weights.h"

namespace gauntlet::engine {

struct GoldenCase {
  std::vector<std::int32_t> ids;
  std::vector<std::pair<std::int32_t, float>> top;
  double mean_log_prob = 0;
  std::vector<std::int32_t> greedy;
  std::vector<float> margins;
};

inline nlohmann::json golden_file(const std::string& name) {
  const auto text = read_file(std::string(GAUNTLET_SOURCE_DIR) + "/tests/golden/" + name + ".json");
  return nlohmann::json::parse(text.value());
}

inline std::vector<GoldenCase> golden_cases(const std::string& name) {
  const auto choices = golden_file(name).at("cases");
  const auto logits = golden_file(name + ".float32").at("cases");
  std::vector<GoldenCase> cases;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto& entry = choices[i];
    GoldenCase& one = cases.emplace_back();
    one.ids = entry.at("ids").get<std::vector<std::int32_t>>();
    for (const auto& pair : logits[i].at("last_top20")) one.top.push_back({pair[0], pair[1]});
    one.mean_log_prob = logits[i].at("mean_logprob");
    one.greedy = entry.at("greedy").get<std::vector<std::int32_t>>();
    one.margins = entry.at("margins").get<std::vector<float>>();
  }
  return cases;
}

enum class FileKind { safetensors, gguf };

/// A model of models/, or the same one through a GGUF file made from it.
inline model::ModelWeights golden_model(const std::string& name,
                                        FileKind kind = FileKind::safetensors) {
  const std::string folder = std::string(GAUNTLET_SOURCE_DIR) + "/models/" + name;
  if (kind == FileKind::safetensors) return model::load_model(folder).value();
  const auto path =
      std::filesystem::temp_directory_path() / (name + "-" + std::to_string(getpid()) + ".gguf");
  check(static_cast<bool>(model::save_model(model::open_source(folder).value(), path,
                                            model::Existing::replace, [](auto...) {})),
        "the model could not be written as GGUF");
  auto weights = model::load_model(path.string()).value();
  std::filesystem::remove(path);  // mapped: its bytes stay until they are let go
  return weights;
}

inline std::unique_ptr<Executor> executor_for(const model::ModelWeights& weights,
                                              const EngineOptions& options) {
  return std::move(make_cpu_executor(weights, {.options = options}).value());
}

/// Below this margin the first and second choice may change places under another order of sums.
inline constexpr float kDecided = 0.02f;
inline constexpr float kLogitTolerance = 1e-4f;

inline void expect_golden(Executor& executor, const GoldenCase& golden, std::int64_t chunk) {
  const SequenceId sequence = executor.kv().create();
  const ItemResult after = prefill(executor, sequence, golden.ids, chunk);
  for (const auto& [id, logit] : golden.top) {
    EXPECT_NEAR(after.logits[id], logit, kLogitTolerance) << "token " << id;
  }
  // The golden ids are forced, so that one early difference does not hide the rest.
  std::int32_t chosen = after.token;
  for (std::size_t i = 0; i < golden.greedy.size(); ++i) {
    if (golden.margins[i] >= kDecided) {
      EXPECT_EQ(chosen, golden.greedy[i]) << "position " << i;
    }
    chosen = decode(executor, sequence, golden.greedy[i]).token;
  }
  executor.kv().free(sequence);
}

}  // namespace gauntlet::engine
