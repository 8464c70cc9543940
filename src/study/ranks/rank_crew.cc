#include "study/ranks/rank_crew.h"

#include <algorithm>
#include <utility>

#include "core/os/threads.h"
#include "core/ranks/thread_group.h"

namespace gauntlet::study::inline ranks {
namespace {

engine::RankConfig with_pulse(engine::RankConfig config) {
  if (!config.pulse) config.pulse = std::make_shared<RankPulse>(1e9);  // beats when it is told to
  return config;
}

/// Each rank has its own, as far as there are.
engine::RankConfig on_cpus(engine::RankConfig config, int rank) {
  const auto cpus = static_cast<int>(allowed_cpus().size());
  config.cpu.first_cpu = rank * std::max(1, config.cpu.options.threads) % cpus;
  return config;
}

}  // namespace

RankCrew::RankCrew(const model::ModelWeights& weights, engine::RankConfig config)
    : weights_(weights), config_(with_pulse(std::move(config))), thread_([this] {
        const auto ended = ::gauntlet::ranks::run_threads(
            config_.mesh.ranks(), [&](::gauntlet::ranks::Group& group) {
              return group.rank() == 0
                         ? lead(group)
                         : engine::follow_ranks(group, weights_, on_cpus(config_, group.rank()));
            });
        const std::lock_guard lock(mutex_);
        ends_ = true;
        answer_ = ended ? Expected<void>(Error{"the ranks have ended"}) : ended;
        changed_.notify_all();
      }) {}

Expected<std::unique_ptr<RankCrew>> RankCrew::make(const model::ModelWeights& weights,
                                                   engine::RankConfig config) {
  std::unique_ptr<RankCrew> crew(new RankCrew(weights, std::move(config)));
  const auto ready = crew->run([](Executor&, RankPulse&) { return Expected<void>(); });
  if (!ready) return ready.error();
  return crew;
}

RankCrew::~RankCrew() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Expected<void> RankCrew::run(Order order) {
  std::unique_lock lock(mutex_);
  if (ends_) return answer_.value_or(Error{"the ranks have ended"});
  answer_.reset();
  order_ = std::move(order);
  changed_.notify_all();
  changed_.wait(lock, [&] { return answer_.has_value(); });
  return *answer_;
}

Expected<void> RankCrew::lead(::gauntlet::ranks::Group& group) {
  const auto executor = engine::lead_ranks(group, weights_, on_cpus(config_, 0));
  if (!executor) return executor.error();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || order_; });
    if (ends_) return {};
    const Order order = std::exchange(order_, {});
    lock.unlock();
    Expected<void> done;
    try {
      done = order(**executor, *config_.pulse);
    } catch (const std::exception& fault) {
      done = Error{fault.what()};
    }
    lock.lock();
    if (!done) return done;  // told once all ranks have ended
    answer_ = done;
    changed_.notify_all();
  }
}

}  // namespace gauntlet::study::inline ranks
