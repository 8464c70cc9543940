#include "engine/measure/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/random.h"

namespace gauntlet::engine::inline measure {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::cpu::Precision;

constexpr std::int64_t kPageSlack = 64;  // positions lost at the ends of a sequence's pages

double rate_of(Precision precision, const MachineRates& rates) {
  switch (precision) {
    case Precision::f32:
      return rates.f32_flops_per_s;
    case Precision::bf16:
      return rates.bf16_flops_per_s;
    case Precision::int8:
      return rates.int8_flops_per_s;
  }
  fail("no such precision");
}

}  // namespace

std::string_view name_of(SpeedKind kind) {
  return kind == SpeedKind::prefill ? "prefill" : "decode";
}

std::int64_t SpeedTest::positions() const { return batch * (context + tokens + kPageSlack); }

SpeedMeter::SpeedMeter(Executor& executor) : executor_(executor) {}

SpeedMeter::~SpeedMeter() { free(contexts_); }

void SpeedMeter::free(Sequences& sequences) {
  for (const SequenceId sequence : sequences) executor_.kv().free(sequence);
  sequences.clear();
}

std::int32_t SpeedMeter::random_token() {
  constexpr std::uint64_t kSeed = 0x9AE16A3B2F90404F;
  return static_cast<std::int32_t>(
      Random(kSeed).below(static_cast<std::uint64_t>(executor_.config().vocab), drawn_++));
}

Expected<Ticket> SpeedMeter::submit(std::vector<BatchItem> items) {
  KvPool& kv = executor_.kv();
  for (const BatchItem& item : items) {
    if (!kv.reserve(item.sequence, std::ssize(item.tokens))) {
      return Error{
          fmt::format("the KV cache is full at {} sequences: take a smaller batch, context "
                      "or number of tokens",
                      items.size())};
    }
  }
  return executor_.submit(std::move(items));
}

/// Counts what the step moved; `tokens` gets what was sampled.
void SpeedMeter::collect(Ticket ticket, std::vector<std::int32_t>* tokens) {
  const auto results = executor_.collect(ticket);
  if (tokens) {
    tokens->clear();
    for (const ItemResult& result : results) tokens->push_back(std::max(result.token, 0));
  }
  const StepTraffic traffic = executor_.last_traffic();
  sample_.bytes +=
      static_cast<double>(traffic.dense_bytes + traffic.expert_bytes + traffic.kv_bytes);
  sample_.active_experts += traffic.active_experts;
  ++sample_.steps;
}

Expected<void> SpeedMeter::fill(const Sequences& sequences, std::int64_t tokens,
                                const std::function<void(std::int64_t, std::int64_t)>& progress) {
  std::int64_t filled = 0, room = executor_.max_batch_tokens();
  const std::int64_t all = tokens * std::ssize(sequences);
  std::vector<BatchItem> items;
  const auto run = [&]() -> Expected<void> {
    const auto ticket = submit(std::exchange(items, {}));
    if (!ticket) return ticket.error();
    collect(*ticket, nullptr);
    room = executor_.max_batch_tokens();
    if (progress) progress(filled, all);
    return {};
  };
  for (const SequenceId sequence : sequences) {
    for (std::int64_t done = 0; done < tokens;) {
      const std::int64_t count = std::min(tokens - done, room);
      done += count;
      filled += count;
      room -= count;
      BatchItem item{.sequence = sequence, .want = done == tokens ? Want::token : Want::nothing};
      for (std::int64_t i = 0; i < count; ++i) item.tokens.push_back(random_token());
      items.push_back(std::move(item));
      if (room > 0) continue;
      if (auto ran = run(); !ran) return ran;
    }
  }
  if (!items.empty()) {
    if (auto ran = run(); !ran) return ran;
  }
  return {};
}

/// Where the executor can have two steps under way, the next is submitted before the last one's
/// tokens are known, as a service does.
Expected<void> SpeedMeter::decode(const Sequences& sequences, std::int64_t tokens) {
  const bool runs_ahead = executor_.most_in_flight() > 1;
  std::vector<std::int32_t> next(sequences.size());
  for (std::int32_t& token : next) token = random_token();
  std::optional<Ticket> under_way;
  for (std::int64_t i = 0; i < tokens; ++i) {
    std::vector<BatchItem> items;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      items.push_back({.sequence = sequences[s], .tokens = {under_way ? late_token(s) : next[s]}});
    }
    const auto ticket = submit(std::move(items));
    if (under_way) collect(*under_way, nullptr);
    under_way.reset();
    if (!ticket) return ticket.error();
    if (runs_ahead && i + 1 < tokens) {
      under_way = *ticket;
    } else {
      collect(*ticket, &next);
    }
  }
  return {};
}

Expected<void> SpeedMeter::prepare(
    const SpeedTest& test, const std::function<void(std::int64_t, std::int64_t)>& progress) {
  if (test.context + test.tokens > executor_.config().max_positions) {
    return Error{
        fmt::format("{} tokens after a context of {} do not fit {}, which has {} positions",
                    test.tokens, test.context, executor_.config().name,
                    executor_.config().max_positions),
        ErrorKind::wrong_use};
  }
  if (test.batch > executor_.max_batch_tokens()) {
    return Error{fmt::format("a batch of {} sequences does not fit a step of {} tokens", test.batch,
                             executor_.max_batch_tokens()),
                 ErrorKind::wrong_use};
  }
  if (test.context != test_.context) free(contexts_);
  test_ = test;
  Sequences added;
  while (std::ssize(contexts_) < test.batch) {
    contexts_.push_back(executor_.kv().create());
    added.push_back(contexts_.back());
  }
  if (test.context == 0) return {};
  const auto filled = fill(added, test.context, progress);
  if (filled) return {};
  free(contexts_);
  return filled.error();
}

Expected<SpeedSample> SpeedMeter::measure() {
  Sequences sequences;
  for (std::int64_t i = 0; i < test_.batch; ++i) {
    sequences.push_back(executor_.kv().fork(contexts_[i]));
  }
  sample_ = {};
  const auto start = Clock::now();
  const auto ran = test_.kind == SpeedKind::prefill ? fill(sequences, test_.tokens, {})
                                                    : decode(sequences, test_.tokens);
  sample_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  free(sequences);
  if (!ran) return ran.error();
  return sample_;
}

SpeedWork work_of(const SpeedTest& test, const model::ModelConfig& config) {
  const auto as_double = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = as_double(config.hidden), tokens = as_double(test.all_tokens());
  const double layers = as_double(config.num_layers);
  const double projections =
      2 * hidden * as_double(2 * config.query_width() + 2 * config.kv_width() + config.num_experts);
  const double experts =
      2 * 3 * hidden * as_double(config.intermediate) * as_double(config.experts_per_token);
  const double heads = 2 * hidden * as_double(config.vocab);
  // A prompt's logits are wanted after its last token only.
  const double logits = test.kind == SpeedKind::prefill ? as_double(test.batch) : tokens;
  SpeedWork work{.dense_flops = tokens * layers * projections,
                 .head_flops = logits * heads,
                 .head_rows = test.batch,
                 .expert_flops = tokens * layers * experts};
  for (const model::AttentionSpan span : config.attention) {
    double seen = 0;
    for (std::int64_t i = 0; i < test.tokens; ++i) {
      const std::int64_t all = test.context + i + 1;
      seen += as_double(span == model::AttentionSpan::full ? all
                                                           : std::min(all, config.sliding_window));
    }
    work.attention_flops += 4 * as_double(config.query_width()) * seen * as_double(test.batch);
  }
  return work;
}

SpeedLimit limit_of(const SpeedWork& work, double bytes, const Plan& plan,
                    const MachineRates& rates) {
  // A GPU's tensor cores multiply everything in bf16.
  const double dense = plan.cuda ? rates.bf16_flops_per_s : rate_of(plan.dense, rates);
  const double experts = plan.cuda ? dense : rate_of(plan.experts, rates);
  const double attention = plan.cuda ? dense : rates.f32_flops_per_s;
  // A screened head multiplies bytes by values of two.
  const double head = plan.screens(work.head_rows) ? rates.int8_flops_per_s / 2 : dense;
  if (rates.read_bytes_per_s <= 0 || dense <= 0 || head <= 0 || experts <= 0 || attention <= 0) {
    return {};
  }
  const double memory = bytes / rates.read_bytes_per_s;
  const double compute = work.dense_flops / dense + work.head_flops / head +
                         work.expert_flops / experts + work.attention_flops / attention;
  return memory >= compute ? SpeedLimit{memory, "memory"} : SpeedLimit{compute, "compute"};
}

}  // namespace gauntlet::engine::inline measure
