// An executor under a test's control: the next token is a function of those before it, and every
// step is written down.
#pragma once
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine::inline steps {

class FakeExecutor final : public Executor {
 public:
  using History = std::vector<std::int32_t>;

  FakeExecutor(model::ModelConfig config, std::int64_t max_batch_tokens, std::int64_t pages = 1000)
      : config_(std::move(config)),
        max_batch_tokens_(max_batch_tokens),
        kv_({.page_tokens = 4, .window = 8, .full_pages = pages, .sliding_pages = pages}) {
    next = [vocab = static_cast<std::int32_t>(config_.vocab)](const History& history) {
      return (history.back() + 1) % vocab;
    };
  }

  // What a test sets. Unless it does, the next token is one more than the last, and 0 after all.
  std::function<std::int32_t(const History&)> next;
  std::function<void()> before_step = [] {};

  // What a test reads.
  struct Step {
    std::vector<BatchItem> items;
  };
  std::vector<Step> steps;

  const model::ModelConfig& config() const override { return config_; }
  const Plan& plan() const override { return plan_; }
  KvPool& kv() override { return kv_; }
  std::int64_t max_batch_tokens() const override { return max_batch_tokens_; }
  void watch(LayerProbe*) override {}
  StepTraffic last_traffic() const override {
    return {.dense_bytes = 1000, .expert_bytes = 100, .kv_bytes = 10};
  }
  std::int64_t weight_bytes() const override { return 5000; }

  Ticket submit(std::vector<BatchItem> items) override {
    before_step();
    steps.push_back({std::move(items)});
    return static_cast<Ticket>(steps.size());
  }

  std::vector<ItemResult> collect(Ticket ticket) override {
    check(ticket == static_cast<Ticket>(steps.size()), "one step at a time");
    for (const PageCopy& asked : kv_.take_copies()) copy(asked);
    std::vector<ItemResult> results;
    std::int64_t tokens = 0;
    for (const BatchItem& item : steps.back().items) {
      tokens += std::ssize(item.tokens);
      results.push_back(take(item));
    }
    check(tokens <= max_batch_tokens_, "a step carries too many tokens");
    for (const BatchItem& item : steps.back().items) {
      kv_.commit(item.sequence, std::ssize(item.tokens));
    }
    return results;
  }

 private:
  /// The next token has two thirds of the probability, all others share the rest.
  std::vector<float> logits_after(const History& history) const {
    const std::int32_t likely = next(history);
    if (likely == kNoChoice) {
      return std::vector<float>(config_.vocab, std::numeric_limits<float>::quiet_NaN());
    }
    check(likely >= 0 && likely < config_.vocab, "the next token is not in the vocabulary");
    std::vector<float> logits(static_cast<std::size_t>(config_.vocab), 0.0f);
    logits[likely] = static_cast<float>(std::log(2.0 * static_cast<double>(config_.vocab - 1)));
    return logits;
  }

  /// What the pages hold: a sequence is what was written there, by whomever.
  History read(SequenceId sequence) const {
    const std::int64_t page_tokens = kv_.config().page_tokens;
    const auto full = kv_.table(sequence, KvGroup::full);
    const auto sliding = kv_.table(sequence, KvGroup::sliding);
    History history;
    for (std::int64_t at = 0; at < kv_.length(sequence); ++at) {
      history.push_back(cells_.at({KvGroup::full, full[at / page_tokens], at % page_tokens}));
      if (at <= kv_.length(sequence) - kv_.config().window) continue;
      check(cells_.at({KvGroup::sliding, sliding[at / page_tokens], at % page_tokens}) ==
                history.back(),
            "a sliding page holds another token");
    }
    return history;
  }

  void write(SequenceId sequence, std::int64_t at, std::int32_t token) {
    const std::int64_t page_tokens = kv_.config().page_tokens;
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      const std::int32_t page = kv_.table(sequence, group)[at / page_tokens];
      cells_[{group, page, at % page_tokens}] = token;
    }
  }

  void copy(const PageCopy& copy) {
    for (std::int64_t slot = 0; slot < kv_.config().page_tokens; ++slot) {
      const auto from = cells_.find({copy.group, copy.from, slot});
      if (from != cells_.end()) cells_[{copy.group, copy.to, slot}] = from->second;
    }
  }

  ItemResult take(const BatchItem& item) {
    History history = read(item.sequence);
    ItemResult result;
    for (std::size_t i = 0; i < item.tokens.size(); ++i) {
      write(item.sequence, std::ssize(history), item.tokens[i]);
      history.push_back(item.tokens[i]);
      if (item.targets.empty()) continue;
      const bool likely = next(history) == item.targets[i];
      const double others = static_cast<double>(config_.vocab - 1);
      result.target_log_probs.push_back(std::log(likely ? 2.0 / 3 : 1.0 / 3 / others));
    }
    if (item.want != Want::nothing) {
      std::vector<float> logits = logits_after(history);
      result.token = sample(logits, item.sampling, item.allowed);
      if (item.want == Want::logits) result.logits = std::move(logits);
    }
    return result;
  }

  model::ModelConfig config_;
  std::int64_t max_batch_tokens_;
  Plan plan_;
  KvPool kv_;
  std::map<std::tuple<KvGroup, std::int32_t, std::int64_t>, std::int32_t> cells_;  // page, slot
};

}  // namespace gauntlet::engine::inline steps
