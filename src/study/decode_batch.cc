#include "study/decode_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace gauntlet::study {
namespace {

using Clock = std::chrono::steady_clock;
using engine::BatchItem;
using engine::SequenceId;

constexpr std::uint64_t kSeed = 0x1A7E9C1E5;
constexpr std::int64_t kPageTokens = 16;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

DecodeBatch::DecodeBatch(const Workbench& bench, engine::Executor& executor, std::int64_t batch)
    : bench_(bench), executor_(executor), random_(kSeed) {
  for (std::int64_t i = 0; i < batch; ++i) sequences_.push_back(executor.kv().create());
}

DecodeBatch::~DecodeBatch() {
  for (const SequenceId id : sequences_) executor_.kv().free(id);
}

Room DecodeBatch::room(std::int64_t batch, std::int64_t positions) {
  return {.sequences = batch, .positions = batch * (positions + kPageTokens), .longest = positions};
}

Expected<void> DecodeBatch::fill(std::int64_t context) {
  for (const SequenceId sequence : sequences_) {
    for (std::int64_t done = 0; done < context;) {
      if (bench_.is_cancelled()) return Error{"interrupted"};
      const std::int64_t count = std::min(executor_.max_batch_tokens(), context - done);
      std::vector<BatchItem> items(1);
      items[0].sequence = sequence;
      items[0].want = engine::Want::nothing;
      for (std::int64_t i = 0; i < count; ++i) items[0].tokens.push_back(random_token());
      if (const auto ran = run(std::move(items)); !ran) return ran;
      done += count;
    }
  }
  return {};
}

Expected<double> DecodeBatch::step_ms() {
  std::vector<BatchItem> items;
  for (const SequenceId sequence : sequences_) {
    items.push_back({.sequence = sequence, .tokens = {random_token()}});
  }
  const auto start = Clock::now();
  if (const auto ran = run(std::move(items)); !ran) return ran.error();
  return 1e3 * seconds_since(start);
}

Expected<void> DecodeBatch::run(std::vector<BatchItem> items) {
  for (const BatchItem& item : items) {
    if (!executor_.kv().reserve(item.sequence, std::ssize(item.tokens))) {
      return Error{fmt::format("the KV cache is full at {} sequences of {} positions",
                               sequences_.size(), executor_.kv().length(item.sequence))};
    }
  }
  executor_.collect(executor_.submit(std::move(items)));
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

}  // namespace gauntlet::study
