// One step of the model over a batch: any mix of prefill chunks and decode tokens, each of a
// sequence whose pages the KV pool has. Nothing above knows the backend.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/kv/kv_pool.h"
#include "engine/steps/runner.h"

namespace gauntlet::engine::inline steps {

/// A token before an item's last whose logits are wanted, too: one that a guess follows.
struct RowWish {
  std::int64_t token = 0;  // index into the item's tokens
  Want want = Want::token;
  SamplingParams sampling;             // of the token after it
  std::vector<std::uint32_t> allowed;  // a bit per token id; empty: all
  bool wants_normed = false;
};

struct BatchItem {
  SequenceId sequence = 0;
  /// Behind what the sequence holds and what steps under way add to it; reserved, not committed.
  /// One may be late_token().
  std::vector<std::int32_t> tokens;
  Want want = Want::token;  // of the last token
  SamplingParams sampling;
  std::vector<std::uint32_t> allowed;  // a bit per token id; empty: all
  std::vector<std::int32_t> targets;   // empty, or one per token: its log-probability is returned
  std::vector<RowWish> rows;           // of tokens before the last, in their order
  /// Of the last tokens, guesses: collect() commits none of them. All may be, where
  /// KvPool::advance() keeps the place of those before them.
  std::int64_t num_drafts = 0;
  /// Of guesses that branch, which guess each one follows, an earlier one; -1: the token before all
  /// guesses. Empty: each follows the one before it.
  std::vector<std::int32_t> parents = {};
  std::optional<ItemRole> role;  // none: a single token decodes
  bool wants_normed = false;     // of the last token: what the output head reads
  bool exports = false;          // residuals of all tokens, after each layer that exports them
  bool residuals_stay = false;   // on the device, where all items say so and the backend can
  /// Experts that each token goes to; 0: the model's number. Alike for all items of a step, and
  /// with fewer of them all tokens are guesses: nothing that they computed is ever committed.
  int experts_per_token = 0;
};

/// The token that item `item` of the step submitted before samples.
constexpr std::int32_t late_token(std::size_t item) {
  return late_row(static_cast<std::int64_t>(item));
}

struct ItemResult {
  std::int32_t token = -1;
  float log_probability = 0;             // of that token, before temperature; where wanted
  std::vector<float> logits;             // [vocab] where wanted
  std::vector<double> target_log_probs;  // one per target
  std::vector<RowResult> rows;           // one per wish
  std::vector<float> normed;             // [hidden] where wanted
  std::vector<float> residuals;          // [exporting layers, tokens, hidden] where wanted
  /// Where they stayed on the device: the first token's row there, until the next step is
  /// submitted.
  std::optional<std::int64_t> device_row;
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const model::ModelConfig& config() const = 0;
  virtual const Plan& plan() const = 0;
  virtual KvPool& kv() = 0;
  /// Tokens one submit may carry.
  virtual std::int64_t max_batch_tokens() const = 0;

  /// Steps that may have been submitted and not collected.
  virtual int most_in_flight() const { return 1; }

  /// Takes a step; its items' pages must be reserved. collect() returns one result per item, in
  /// order, and commits the positions but for those of drafts: the caller commits what it accepts.
  /// Steps are collected in the order they were submitted.
  virtual Ticket submit(std::vector<BatchItem> items) = 0;
  virtual std::vector<ItemResult> collect(Ticket ticket) = 0;
  /// In place of collect(): the step ends, and nothing of it is committed. Where one step at a time
  /// can be under way, none has to be abandoned.
  virtual void abandon(Ticket ticket) { static_cast<void>(ticket); }

  /// Steps submitted from now on are watched; null: no more.
  virtual void watch(LayerProbe* probe) = 0;
  /// As the runner's.
  virtual const DeviceSeam* device_seam() const { return nullptr; }
  virtual void time_gaps(std::vector<double>* /*us*/) {}

  virtual StepTraffic last_traffic() const = 0;
  /// Tokens that each expert got since the executor was made, [layers, experts]. Between steps.
  /// Empty where they are not counted.
  virtual std::span<const std::int64_t> expert_tokens() const { return {}; }
  virtual std::int64_t weight_bytes() const = 0;
};

}  // namespace gauntlet::engine::inline steps
