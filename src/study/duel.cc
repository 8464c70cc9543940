#include "study/duel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "study/decode_batch.h"

namespace gauntlet::study {
namespace {

using engine::SpeedKind;
using engine::SpeedSample;
using nlohmann::json;
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

/// Writes what side `index` had to move, and the time that this takes at least.
void note_limit(const Workbench& bench, const Side& side, const SpeedSample& sample, int index,
                Bout& bout) {
  const engine::Executor& executor = side.executor;
  const auto work = engine::work_of(bout.workload.test, executor.config());
  bout.bytes[index] = sample.bytes;
  bout.limits[index] =
      engine::limit_of(work, sample.bytes, executor.plan(), bench.limits(executor).rates);
  bout.experts_per_layer = static_cast<double>(sample.active_experts) /
                           static_cast<double>(sample.steps * executor.config().num_layers);
}

Expected<lab::Block> block_of(const Workbench& bench, Side& a, Side& b, Bout& bout) {
  if (const auto ready = open(a, b, bout.workload); !ready) return ready.error();
  std::array<double, 4> ns{};
  constexpr std::array kOrder = {0, 1, 1, 0};
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    Side& side = kOrder[i] == 0 ? a : b;
    const auto sample = side.sample(bout.workload);
    if (!sample) return sample.error();
    ns[i] = 1e9 * sample->seconds;
    note_limit(bench, side, *sample, kOrder[i], bout);
  }
  a.close();
  b.close();
  return lab::Block{.baseline_ns = {ns[0], ns[3]}, .optimized_ns = {ns[1], ns[2]}};
}

DuelSide describe(const Workbench& bench, const engine::Executor& executor) {
  return {.plan = executor.plan().describe(),
          .weight_bytes = executor.weight_bytes(),
          .read_from = bench.limits(executor).read_from};
}

json to_json(const DuelSide& side) {
  return {{"plan", side.plan},
          {"weight_bytes", side.weight_bytes},
          {"read_from", side.read_from.empty() ? json() : json(side.read_from)}};
}

json to_json(const engine::SpeedLimit& limit) {
  if (limit.bound_by.empty()) return nullptr;
  return {{"seconds", limit.seconds}, {"bound_by", limit.bound_by}};
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

Expected<Duel> duel(const Workbench& bench, engine::Executor& a, engine::Executor& b,
                    std::vector<Workload> workloads, const DuelBudget& budget) {
  Side first(bench, a), second(bench, b);
  for (Side* side : {&first, &second}) {
    if (const auto filled = side->fill(workloads); !filled) return filled.error();
  }
  Duel result{.a = describe(bench, a), .b = describe(bench, b), .bouts = {}};
  const double each =
      budget.seconds / static_cast<double>(4 * budget.least_blocks * std::ssize(workloads));
  for (Workload& workload : workloads) {
    if (const auto chosen = choose_tokens(first, second, workload, each); !chosen) {
      return chosen.error();
    }
    result.bouts.push_back({.workload = workload});
  }
  const auto start = Clock::now();
  for (int round = 0; round < budget.most_blocks; ++round) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (round >= budget.least_blocks && passed > budget.seconds) break;
    for (Bout& bout : result.bouts) {
      if (bench.is_cancelled()) return Error{"interrupted"};
      const auto block = block_of(bench, first, second, bout);
      if (!block) return block.error();
      bout.blocks.push_back(*block);
    }
  }
  return result;
}

json to_json(const std::vector<lab::Block>& blocks) {
  json list = json::array();
  for (const lab::Block& block : blocks) {
    list.push_back(
        {block.baseline_ns[0], block.optimized_ns[0], block.optimized_ns[1], block.baseline_ns[1]});
  }
  return list;
}

std::vector<lab::Block> blocks_from_json(const json& list) {
  std::vector<lab::Block> blocks;
  for (const json& four : list) {
    blocks.push_back(
        {.baseline_ns = {four.at(0), four.at(3)}, .optimized_ns = {four.at(1), four.at(2)}});
  }
  return blocks;
}

json to_json(const Duel& duel) {
  json bouts = json::array();
  for (const Bout& bout : duel.bouts) {
    const engine::SpeedTest& test = bout.workload.test;
    bouts.push_back({{"name", bout.workload.name},
                     {"batch", test.batch},
                     {"context", test.context},
                     {"tokens", test.tokens},
                     {"ns", to_json(bout.blocks)},
                     {"bytes", {bout.bytes[0], bout.bytes[1]}},
                     {"limits", {to_json(bout.limits[0]), to_json(bout.limits[1])}},
                     {"experts_per_layer", bout.experts_per_layer}});
  }
  return {{"a", to_json(duel.a)}, {"b", to_json(duel.b)}, {"bouts", std::move(bouts)}};
}

}  // namespace gauntlet::study
