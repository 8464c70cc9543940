#include "study/fidelity/expert_replay.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::study::inline fidelity {
namespace {

bool same_experts(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::ranges::is_permutation(a, b);
}

}  // namespace

void RecordedExperts::add(const Text& text, std::int64_t layer, Choice choice) {
  auto& layers = choices_[text];
  if (std::ssize(layers) <= layer) layers.resize(layer + 1);
  layers[layer] = std::move(choice);
}

const RecordedExperts::Choice* RecordedExperts::find(const Text& text, std::int64_t layer) const {
  const auto found = choices_.find(text);
  return found == choices_.end() || std::ssize(found->second) <= layer ? nullptr
                                                                       : &found->second[layer];
}

std::optional<RecordedExperts::Text> RecordedExperts::beginning(
    std::int64_t length, std::span<const std::int32_t> next) const {
  for (const auto& [text, choice] : choices_) {
    if (std::ssize(text) != length + std::ssize(next)) continue;
    if (std::equal(next.begin(), next.end(), text.begin() + length)) {
      return Text(text.begin(), text.begin() + length);
    }
  }
  return std::nullopt;
}

ReplayExecutor::ReplayExecutor(engine::Executor& executor, RecordedExperts& recorded, ReplayUse use)
    : executor_(executor), recorded_(recorded), use_(use) {
  executor.watch(this);
}

ReplayExecutor::~ReplayExecutor() { executor_.watch(nullptr); }

void ReplayExecutor::watch(engine::LayerProbe*) { fail("this executor is watched already"); }

engine::Ticket ReplayExecutor::submit(std::vector<engine::BatchItem> items) {
  step_.clear();
  for (const engine::BatchItem& item : items) {
    const auto [known, is_new] = texts_.try_emplace(item.sequence);
    std::optional<Text>& text = known->second;
    if (is_new) {
      const std::int64_t length = kv().length(item.sequence);
      text = length == 0 ? Text{} : recorded_.beginning(length, item.tokens);
    }
    for (const std::int32_t token : item.tokens) {
      if (text) text->push_back(token);
      step_.push_back(text);
    }
  }
  return executor_.submit(std::move(items));
}

bool ReplayExecutor::replaced_within(Text text) const {
  for (; !text.empty(); text.pop_back()) {
    if (replaced_.contains(text)) return true;
  }
  return false;
}

/// The rows behind the step's tokens, where there are any, are padding.
void ReplayExecutor::routed(std::int64_t layer, std::span<std::int32_t> chosen,
                            std::span<float> weights) {
  const auto each = static_cast<std::size_t>(config().experts_per_token);
  check(step_.size() * each <= chosen.size(), "a step shows fewer choices than it has tokens");
  for (std::size_t t = 0; t < step_.size(); ++t) {
    if (!step_[t]) continue;
    const auto experts = chosen.subspan(t * each, each);
    const auto shares = weights.subspan(t * each, each);
    if (use_ == ReplayUse::replay) {
      replace(*step_[t], layer, experts, shares);
    } else {
      recorded_.add(*step_[t], layer,
                    {{experts.begin(), experts.end()}, {shares.begin(), shares.end()}});
    }
  }
}

void ReplayExecutor::replace(const Text& text, std::int64_t layer, std::span<std::int32_t> experts,
                             std::span<float> weights) {
  const RecordedExperts::Choice* choice = recorded_.find(text, layer);
  if (choice == nullptr) return;
  ++num_choices_;
  if (same_experts(choice->experts, experts)) return;
  ++num_replaced_;
  replaced_.insert(text);
  std::ranges::copy(choice->experts, experts.begin());
  std::ranges::copy(choice->weights, weights.begin());
}

}  // namespace gauntlet::study::inline fidelity
