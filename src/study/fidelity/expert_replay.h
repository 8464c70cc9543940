// The experts that one stack chose for each token of some texts, handed to another stack whatever
// steps it takes the texts in: where a router is undecided, both then go the same way.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/steps/executor.h"

namespace gauntlet::study::inline fidelity {

class RecordedExperts {
 public:
  using Text = std::vector<std::int32_t>;
  /// Of a layer, for one token.
  struct Choice {
    std::vector<std::int32_t> experts;
    std::vector<float> weights;
  };

  /// `text` ends with the token that the choice is for.
  void add(const Text& text, std::int64_t layer, Choice choice);
  /// Null where nothing was recorded.
  const Choice* find(const Text& text, std::int64_t layer) const;
  /// The first `length` tokens of a text that goes on with `next`.
  std::optional<Text> beginning(std::int64_t length, std::span<const std::int32_t> next) const;

 private:
  std::map<Text, std::vector<Choice>> choices_;  // [layers]
};

enum class ReplayUse { record, replay };

/// An executor whose choices of experts are recorded, or replaced by recorded ones. Only where
/// another set of experts was chosen is a choice replaced, weights included.
class ReplayExecutor final : public engine::Executor, private engine::LayerProbe {
 public:
  /// Both outlive it.
  ReplayExecutor(engine::Executor& executor, RecordedExperts& recorded, ReplayUse use);
  ~ReplayExecutor() override;
  ReplayExecutor(const ReplayExecutor&) = delete;
  ReplayExecutor& operator=(const ReplayExecutor&) = delete;

  std::int64_t num_choices() const { return num_choices_; }
  std::int64_t num_replaced() const { return num_replaced_; }
  /// Some token of this text had a choice replaced.
  bool replaced_within(RecordedExperts::Text text) const;

  const model::ModelConfig& config() const override { return executor_.config(); }
  const engine::Plan& plan() const override { return executor_.plan(); }
  engine::KvPool& kv() override { return executor_.kv(); }
  std::int64_t max_batch_tokens() const override { return executor_.max_batch_tokens(); }
  engine::Ticket submit(std::vector<engine::BatchItem> items) override;
  std::vector<engine::ItemResult> collect(engine::Ticket ticket) override {
    return executor_.collect(ticket);
  }
  void watch(engine::LayerProbe* probe) override;
  engine::StepTraffic last_traffic() const override { return executor_.last_traffic(); }
  std::span<const std::int64_t> expert_tokens() const override { return executor_.expert_tokens(); }
  std::int64_t weight_bytes() const override { return executor_.weight_bytes(); }

 private:
  using Text = RecordedExperts::Text;

  void routed(std::int64_t layer, std::span<std::int32_t> chosen,
              std::span<float> weights) override;
  void finished(std::int64_t, std::span<const float>) override {}
  void replace(const Text& text, std::int64_t layer, std::span<std::int32_t> experts,
               std::span<float> weights);

  engine::Executor& executor_;
  RecordedExperts& recorded_;
  ReplayUse use_;
  std::unordered_map<engine::SequenceId, std::optional<Text>> texts_;  // none: not known
  std::vector<std::optional<Text>> step_;  // of each token of the step, the text that ends with it
  std::set<Text> replaced_;
  std::int64_t num_choices_ = 0;
  std::int64_t num_replaced_ = 0;
};

}  // namespace gauntlet::study::inline fidelity
