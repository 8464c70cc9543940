// An executor whose tokens depend on the experts that its router chose, for tests of verification:
// its next token is one more than the last, unless some expert on the way was another than usual.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/steps/fake_executor.h"

namespace gauntlet::study::inline fidelity {

class RoutedFake final : public engine::Executor {
 public:
  using Text = std::vector<std::int32_t>;

  explicit RoutedFake(const model::ModelConfig& config) : inner_(config, 256) {
    inner_.next = [this](const Text& text) {
      Text upto = text;
      std::int32_t step = 1;
      for (; !upto.empty(); upto.pop_back()) step += odd_.contains(upto) ? 10 : 0;
      if (breaks(text, probe != nullptr)) step += 3;
      return static_cast<std::int32_t>((text.back() + step) % inner_.config().vocab);
    };
  }
  static model::ModelConfig small() {
    return {.name = "routed",
            .num_layers = 1,
            .num_experts = 4,
            .experts_per_token = 1,
            .vocab = 100,
            .max_positions = 256,
            .sliding_window = 8};
  }

  // What a test sets: after which texts the router takes another expert, and where the stack is
  // wrong whatever the router does.
  std::function<bool(const Text&)> flips = [](const Text&) { return false; };
  std::function<bool(const Text&, bool watched)> breaks = [](const Text&, bool) { return false; };
  engine::LayerProbe* probe = nullptr;

  const model::ModelConfig& config() const override { return inner_.config(); }
  const engine::Plan& plan() const override { return inner_.plan(); }
  engine::KvPool& kv() override { return inner_.kv(); }
  std::int64_t max_batch_tokens() const override { return inner_.max_batch_tokens(); }
  void watch(engine::LayerProbe* by) override { probe = by; }
  engine::StepTraffic last_traffic() const override { return inner_.last_traffic(); }
  std::int64_t weight_bytes() const override { return inner_.weight_bytes(); }
  std::vector<engine::ItemResult> collect(engine::Ticket ticket) override {
    return inner_.collect(ticket);
  }
  engine::Ticket submit(std::vector<engine::BatchItem> items) override {
    std::vector<Text> texts;
    std::vector<std::int32_t> chosen;
    for (const auto& item : items) {
      Text& text = texts_[item.sequence];
      for (const std::int32_t token : item.tokens) {
        text.push_back(token);
        texts.push_back(text);
        chosen.push_back(flips(text) ? 1 : 0);
      }
    }
    std::vector<float> weights(chosen.size(), 1.0f);
    if (probe != nullptr) probe->routed(0, chosen, weights);
    for (std::size_t t = 0; t < texts.size(); ++t) {
      if (chosen[t] == 1) odd_.insert(texts[t]);
      if (chosen[t] == 0) odd_.erase(texts[t]);
    }
    return inner_.submit(std::move(items));
  }

 private:
  engine::FakeExecutor inner_;
  std::map<engine::SequenceId, Text> texts_;
  std::set<Text> odd_;  // whose last token went to another expert
};

}  // namespace gauntlet::study::inline fidelity
