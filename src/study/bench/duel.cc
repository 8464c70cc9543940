#include "study/bench/duel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "core/check.h"
#include "core/random.h"
#include "lab/measure/turns.h"
#include "study/bench/decode_batch.h"

namespace gauntlet::study::inline bench {
namespace {

using engine::SpeedKind;
using engine::SpeedSample;
using Clock = std::chrono::steady_clock;

/// One stack: the contexts that decodes start from, and the forks of them that are decoded now.
class Side {
 public:
  Side(const Workbench& bench, engine::Executor& on) : executor(on), bench_(bench), prompts_(on) {}

  /// Contexts of so many tokens for the largest batch that wants them.
  Expected<void> fill(const std::vector<Workload>& workloads) {
    std::map<std::int64_t, std::int64_t> batches;
    for (const auto& [name, test] : workloads) {
      if (test.kind == SpeedKind::prefill) continue;
      batches[test.context] = std::max(batches[test.context], test.batch);
    }
    for (const auto& [context, batch] : batches) {
      auto made = std::make_unique<DecodeBatch>(bench_, executor, batch);
      if (auto filled = made->fill(context); !filled) return filled;
      contexts_[context] = std::move(made);
    }
    return {};
  }
  /// Sets a workload up for the samples that follow.
  Expected<void> open(const Workload& workload) {
    if (workload.test.kind == SpeedKind::prefill) return prompts_.prepare(workload.test, {});
    forks_.reset();
    auto forks = contexts_.at(workload.test.context)->fork(workload.test.batch);
    if (!forks) return forks.error();
    forks_ = std::move(*forks);
    return {};
  }
  /// A decode is measured as it goes on: the step before is not timed, as the other side had the
  /// caches until then.
  Expected<SpeedSample> sample(const Workload& workload) {
    if (workload.test.kind == SpeedKind::prefill) return prompts_.measure();
    if (const auto warm = forks_->step_ms(); !warm) return warm.error();
    return forks_->sample(workload.test.tokens);
  }
  void close() { forks_.reset(); }

  engine::Executor& executor;

 private:
  const Workbench& bench_;
  engine::SpeedMeter prompts_;
  std::map<std::int64_t, std::unique_ptr<DecodeBatch>> contexts_;  // by their tokens
  std::unique_ptr<DecodeBatch> forks_;
};

/// Both sides stand ready for a workload.
Expected<void> open(Side& a, Side& b, const Workload& workload) {
  for (Side* side : {&a, &b}) {
    if (auto ready = side->open(workload); !ready) return ready;
  }
  return {};
}

/// Warms both up. The slower side's sample shall last about `seconds`, and both get the same number
/// of tokens.
Expected<void> choose_tokens(Side& a, Side& b, Workload& workload, double seconds) {
  const bool decodes = workload.test.kind == SpeedKind::decode;
  if (decodes) workload.test.tokens = 1;
  if (auto ready = open(a, b, workload); !ready) return ready;
  double slowest = 0;
  for (Side* side : {&a, &b}) {
    const auto sample = side->sample(workload);
    if (!sample) return sample.error();
    slowest = std::max(slowest, sample->seconds);
    side->close();
  }
  if (!decodes) return {};
  workload.test.tokens =
      std::clamp(static_cast<std::int64_t>(seconds / slowest), std::int64_t{1}, kMostDecodeTokens);
  return {};
}

/// Writes what a side had to move, and the time that this takes at least.
void note_limit(const Workbench& bench, const engine::Executor& executor, const SpeedSample& sample,
                std::size_t side, Bout& bout) {
  const auto work = engine::work_of(bout.workload.test, executor.config());
  bout.bytes[side] = sample.bytes;
  bout.limits[side] =
      engine::limit_of(work, sample.bytes, executor.plan(), bench.limits(executor).rates);
  bout.experts_per_layer = static_cast<double>(sample.active_experts) /
                           static_cast<double>(sample.steps * executor.config().num_layers);
}

/// Takes one block of every bout. A round with a dropped block is dropped as a whole, so that the
/// blocks of all bouts stay side by side.
class RoundTaker {
 public:
  RoundTaker(const Workbench& bench, Side& a, Side& b, std::uint64_t seed, Duel& result)
      : bench_(bench), sides_{&a, &b}, random_(seed), result_(result) {}

  Expected<bool> take() {
    stats::ProcessBlocks taken;
    for (Bout& bout : result_.bouts) {
      if (bench_.is_cancelled()) return Error{"interrupted"};
      auto block = block_of(bout);
      if (!block) return block.error();
      if (!*block) return false;
      taken.push_back(std::move(**block));
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
      result_.bouts[i].blocks.push_back(std::move(taken[i]));
    }
    return true;
  }

 private:
  Expected<std::optional<stats::Block>> block_of(Bout& bout) {
    if (const auto ready = open(*sides_[0], *sides_[1], bout.workload); !ready) {
      return ready.error();
    }
    auto block = lab::take_block(
        sides_.size(), random_,
        [&](std::size_t index, int) -> Expected<double> {
          const auto sample = sides_[index]->sample(bout.workload);
          if (!sample) return sample.error();
          note_limit(bench_, sides_[index]->executor, *sample, index, bout);
          return 1e9 * sample->seconds;
        },
        [&] { return bench_.read_sensors(); }, *result_.conditions);
    for (Side* side : sides_) side->close();
    return block;
  }

  const Workbench& bench_;
  std::array<Side*, 2> sides_;
  Random random_;
  Duel& result_;
};

DuelSide describe(const Workbench& bench, const engine::Executor& executor) {
  return {.plan = executor.plan().describe(),
          .weight_bytes = executor.weight_bytes(),
          .read_from = bench.limits(executor).read_from};
}

}  // namespace

Room room_for(const std::vector<Workload>& workloads) {
  Room room;
  for (const Workload& workload : workloads) {
    engine::SpeedTest test = workload.test;
    if (test.kind == SpeedKind::decode) test.tokens = kForkTokens;
    room.sequences = std::max(room.sequences, 2 * test.batch + 2);  // contexts, and their forks
    room.positions = std::max(room.positions, 2 * test.positions());
    room.longest = std::max(room.longest, test.context + test.tokens);
  }
  return room;
}

Expected<void> take_rounds(const DuelBudget& budget, const lab::Conditions& conditions,
                           const TakeRound& take_round) {
  constexpr int kFewestRounds = 2;  // that have an interval
  check(budget.least_blocks >= kFewestRounds, "a duel of one round says nothing");
  const auto start = Clock::now();
  int kept = 0;
  for (int round = 0; round < budget.most_blocks; ++round) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (round >= budget.least_blocks && passed > budget.seconds) break;
    const auto taken = take_round();
    if (!taken) return taken.error();
    kept += *taken;
  }
  if (kept >= kFewestRounds) return {};
  return Error{fmt::format(
      "{} blocks were dropped, because the GPU was slowed by its temperature, and {} rounds are "
      "too few to judge by",
      conditions.dropped_blocks, kept)};
}

Expected<Duel> duel(const Workbench& bench, engine::Executor& a, engine::Executor& b,
                    std::vector<Workload> workloads, const DuelBudget& budget) {
  Side first(bench, a), second(bench, b);
  for (Side* side : {&first, &second}) {
    if (const auto filled = side->fill(workloads); !filled) return filled.error();
  }
  Duel result{.a = describe(bench, a), .b = describe(bench, b), .bouts = {}};
  const lab::Conditions& conditions = result.conditions.emplace();
  const double each =
      budget.seconds / static_cast<double>(4 * budget.least_blocks * std::ssize(workloads));
  for (Workload& workload : workloads) {
    if (const auto chosen = choose_tokens(first, second, workload, each); !chosen) {
      return chosen.error();
    }
    result.bouts.push_back({.workload = workload});
  }
  RoundTaker rounds(bench, first, second, budget.seed, result);
  const auto taken = take_rounds(budget, conditions, [&] { return rounds.take(); });
  if (!taken) return taken.error();
  return result;
}

}  // namespace gauntlet::study::inline bench
