#include "study/bench/decode_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"

namespace gauntlet::study::inline bench {
namespace {

using Clock = std::chrono::steady_clock;
using engine::BatchItem;
using engine::SequenceId;

constexpr std::uint64_t kBatchSeed = 0x1A7E9C1E5;
constexpr std::int64_t kPageTokens = 16;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

DecodeBatch::DecodeBatch(const Workbench& bench, engine::Executor& executor, std::int64_t batch)
    : bench_(bench), executor_(executor), random_(kBatchSeed) {
  for (std::int64_t i = 0; i < batch; ++i) {
    sequences_.push_back(executor.kv().create());
    next_.push_back(random_token());
  }
}

DecodeBatch::~DecodeBatch() {
  for (const SequenceId id : sequences_) executor_.kv().free(id);
}

Room DecodeBatch::room(std::int64_t batch, std::int64_t positions) {
  return {.sequences = batch, .positions = batch * (positions + kPageTokens), .longest = positions};
}

Expected<void> DecodeBatch::fill(std::int64_t context) {
  const model::ModelConfig& model = executor_.config();
  if (context >= model.max_positions) {
    return Error{fmt::format("a context of {} does not fit {}, which has {} positions", context,
                             model.name, model.max_positions)};
  }
  std::vector<BatchItem> items;
  std::int64_t room = executor_.max_batch_tokens();
  for (const SequenceId sequence : sequences_) {
    for (std::int64_t done = 0; done < context;) {
      const std::int64_t count = std::min(room, context - done);
      BatchItem item{.sequence = sequence, .want = engine::Want::nothing};
      for (std::int64_t i = 0; i < count; ++i) item.tokens.push_back(random_token());
      items.push_back(std::move(item));
      done += count;
      room -= count;
      if (room > 0) continue;
      if (bench_.is_cancelled()) return Error{"interrupted"};
      if (auto ran = run(std::exchange(items, {})); !ran) return ran;
      room = executor_.max_batch_tokens();
    }
  }
  if (items.empty()) return {};
  return run(std::move(items));
}

Expected<std::unique_ptr<DecodeBatch>> DecodeBatch::fork(std::int64_t batch) const {
  check(batch <= size(), "more forks than sequences");
  auto forks = std::make_unique<DecodeBatch>(bench_, executor_, 0);
  for (std::int64_t i = 0; i < batch; ++i) {
    forks->sequences_.push_back(executor_.kv().fork(sequences_[i]));
    forks->next_.push_back(forks->random_token());
  }
  if (const auto settled = forks->step_ms(); !settled) return settled.error();
  return forks;
}

Expected<double> DecodeBatch::step_ms() {
  std::vector<BatchItem> items;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    items.push_back({.sequence = sequences_[i], .tokens = {next_[i]}});
  }
  const auto start = Clock::now();
  if (const auto ran = run(std::move(items)); !ran) return ran.error();
  return 1e3 * seconds_since(start);
}

Expected<engine::SpeedSample> DecodeBatch::sample(std::int64_t tokens) {
  engine::SpeedSample sample;
  for (std::int64_t i = 0; i < tokens; ++i) {
    const auto ms = step_ms();
    if (!ms) return ms.error();
    const engine::StepTraffic traffic = executor_.last_traffic();
    sample.seconds += 1e-3 * *ms;
    sample.bytes +=
        static_cast<double>(traffic.dense_bytes + traffic.expert_bytes + traffic.kv_bytes);
    sample.active_experts += traffic.active_experts;
    ++sample.steps;
  }
  return sample;
}

Expected<void> DecodeBatch::run(std::vector<BatchItem> items) {
  for (const BatchItem& item : items) {
    if (!executor_.kv().reserve(item.sequence, std::ssize(item.tokens))) {
      return Error{fmt::format("the KV cache is full at {} sequences of {} positions",
                               sequences_.size(), executor_.kv().length(item.sequence))};
    }
  }
  const bool sampled = items.front().want != engine::Want::nothing;
  const auto results = executor_.collect(executor_.submit(std::move(items)));
  for (std::size_t i = 0; sampled && i < results.size(); ++i) {
    next_[i] = std::max(results[i].token, 0);
  }
  return {};
}

std::int32_t DecodeBatch::random_token() {
  return static_cast<std::int32_t>(
      random_.next_below(static_cast<std::uint64_t>(bench_.model().vocab)));
}

Expected<std::vector<double>> time_steps(const Workbench& bench, DecodeBatch& batch,
                                         const StepBudget& budget) {
  std::vector<double> ms;
  const auto start = Clock::now();
  while (std::ssize(ms) < budget.most) {
    if (std::ssize(ms) >= budget.least && seconds_since(start) > budget.seconds) break;
    if (bench.is_cancelled()) return Error{"interrupted"};
    const auto one = batch.step_ms();
    if (!one) return one.error();
    ms.push_back(*one);
  }
  return ms;
}

}  // namespace gauntlet::study::inline bench
