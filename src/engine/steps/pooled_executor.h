// The executor of every backend: a pool that knows whose page is whose, and a runner that computes.
// Here items become a step's data, and rows become items' results again.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "engine/steps/executor.h"

namespace gauntlet::engine::inline steps {

class PooledExecutor final : public Executor {
 public:
  PooledExecutor(const KvPoolConfig& pool, std::unique_ptr<Runner> runner);

  const model::ModelConfig& config() const override { return runner_->config(); }
  const Plan& plan() const override { return runner_->plan(); }
  KvPool& kv() override { return pool_; }
  std::int64_t max_batch_tokens() const override { return runner_->limits().tokens; }
  int most_in_flight() const override { return runner_->most_in_flight(); }
  Ticket submit(std::vector<BatchItem> items) override;
  std::vector<ItemResult> collect(Ticket ticket) override;
  void abandon(Ticket ticket) override;
  void watch(LayerProbe* probe) override { runner_->watch(probe); }
  void time_gaps(std::vector<double>* us) override { runner_->time_gaps(us); }
  const DeviceSeam* device_seam() const override { return runner_->device_seam(); }
  StepTraffic last_traffic() const override { return runner_->last_traffic(); }
  std::span<const std::int64_t> expert_tokens() const override { return runner_->expert_tokens(); }
  std::int64_t weight_bytes() const override { return runner_->weight_bytes(); }

 private:
  /// What a row is to its item.
  struct RowUse {
    std::size_t item = 0;
    std::int64_t target = -1;  // index into the item's targets; -1: none
    std::int64_t wish = -1;    // index into the item's rows; -1: none
    bool is_last = false;      // the item's own result
  };
  struct ItemPart {
    SequenceId sequence = 0;
    std::int64_t num_tokens = 0;
    std::int64_t num_drafts = 0;
    bool exports = false;
    std::size_t num_targets = 0;
    std::size_t num_wishes = 0;
  };
  struct InFlight {
    Ticket ticket = 0;  // the runner's
    std::vector<ItemPart> items;
    std::vector<RowUse> uses;            // of each row
    std::vector<std::int64_t> last_row;  // of each item; -1: nothing is sampled after it
  };

  StepData flatten(std::vector<BatchItem>& items, InFlight& flight) const;
  void add_tokens(const BatchItem& item, StepData& step) const;
  /// Of the item added last, whose guesses branch.
  static void add_tree(const BatchItem& item, StepData& step);
  static void add_rows(BatchItem& item, std::size_t index, StepData& step, InFlight& flight);
  void add_tables(const std::vector<BatchItem>& items, StepData& step) const;
  /// The id of a late token as a row of the step before.
  std::int32_t resolved(std::int32_t id) const;
  /// The oldest step's, which is no longer under way.
  InFlight take(Ticket ticket);
  void retract(const InFlight& flight);
  /// Deals what the runner exported out to the items that asked for it.
  void add_residuals(const InFlight& flight, std::vector<ItemResult>& results) const;

  KvPool pool_;
  std::unique_ptr<Runner> runner_;
  std::deque<InFlight> in_flight_;
};

}  // namespace gauntlet::engine::inline steps
