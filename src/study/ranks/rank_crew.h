// RankCrew: a model on the ranks of a mesh, as threads that wait for orders.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/ranks/rank_executor.h"
#include "model/weights.h"

namespace gauntlet::study::inline ranks {

using engine::Executor;
using engine::RankPulse;

class RankCrew {
 public:
  /// What rank 0 does, on its own thread.
  using Order = std::function<Expected<void>(Executor& executor, RankPulse& pulse)>;

  /// Packs the weights, which outlive it.
  static Expected<std::unique_ptr<RankCrew>> make(const model::ModelWeights& weights,
                                                  engine::RankConfig config);
  ~RankCrew();
  RankCrew(const RankCrew&) = delete;
  RankCrew& operator=(const RankCrew&) = delete;

  /// Returns when it is done. After an error there is nothing more to order.
  Expected<void> run(Order order);

 private:
  RankCrew(const model::ModelWeights& weights, engine::RankConfig config);
  Expected<void> lead(::gauntlet::ranks::Group& group);

  const model::ModelWeights& weights_;
  const engine::RankConfig config_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Order order_;                           // none: nothing to do
  std::optional<Expected<void>> answer_;  // to the last order
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace gauntlet::study::inline ranks
