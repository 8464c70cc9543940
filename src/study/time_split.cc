#include "study/time_split.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/measure/speed.h"
#include "engine/steps/layer_probe.h"
#include "lab/profile/kernel_shares.h"
#include "lab/profile/profiler.h"
#include "stats/median.h"
#include "study/bench/decode_batch.h"

namespace gauntlet::study {
namespace {

using Clock = std::chrono::steady_clock;

/// Reads the clock where a layer hands over: its first half ends with the router's choice, its
/// second with the residual.
class ClockProbe final : public engine::LayerProbe {
 public:
  void begin() { last_ = Clock::now(); }
  void routed(std::int64_t, std::span<std::int32_t>, std::span<float>) override {
    attention_us += lap();
  }
  void finished(std::int64_t, std::span<const float>) override { experts_us += lap(); }
  void end() { head_us += lap(); }

  double attention_us = 0, experts_us = 0, head_us = 0;

 private:
  double lap() {
    const auto now = Clock::now();
    return std::chrono::duration<double, std::micro>(now - std::exchange(last_, now)).count();
  }
  Clock::time_point last_ = Clock::now();
};

/// What the parts of a step must read and compute, in the words of engine::limit_of.
struct PartCost {
  engine::SpeedWork work;
  double bytes = 0;
};

struct StepCosts {
  PartCost attention;  // half of the layers
  PartCost experts;
  PartCost head;
};

StepCosts costs_of(const engine::Executor& executor, const SplitTest& test) {
  const model::ModelConfig& model = executor.config();
  const engine::StepTraffic traffic = executor.last_traffic();
  const engine::SpeedWork all =
      engine::work_of({.batch = test.batch, .context = test.context, .tokens = 1}, model);
  const double head_flops = 2 * static_cast<double>(model.vocab * model.hidden * test.batch);
  const double layer_bytes =
      2 * static_cast<double>(model.num_layers * model.hidden *
                              (2 * model.query_width() + 2 * model.kv_width() + model.num_experts));
  const double head_bytes = static_cast<double>(traffic.dense_bytes) - layer_bytes;
  return {
      .attention = {{.dense_flops = all.dense_flops - head_flops,
                     .attention_flops = all.attention_flops},
                    layer_bytes + static_cast<double>(traffic.kv_bytes)},
      .experts = {{.expert_flops = all.expert_flops}, static_cast<double>(traffic.expert_bytes)},
      .head = {{.dense_flops = head_flops}, head_bytes}};
}

StepPart part_of(const Workbench& bench, const engine::Executor& executor, std::string name,
                 double us, const PartCost& cost) {
  const auto limit =
      engine::limit_of(cost.work, cost.bytes, executor.plan(), bench.limits(executor).rates);
  return {.name = std::move(name),
          .us = us,
          .floor_us = 1e6 * limit.seconds,
          .bound_by = limit.bound_by};
}

Expected<void> split_on_cpu(const Workbench& bench, engine::Executor& executor,
                            const SplitTest& test, DecodeBatch& batch, TimeSplit& split) {
  ClockProbe probe;
  executor.watch(&probe);
  double all_us = 0;
  for (std::int64_t i = 0; i < test.steps; ++i) {
    probe.begin();
    const auto ms = batch.step_ms();
    probe.end();
    if (!ms) {
      executor.watch(nullptr);
      return ms.error();
    }
    all_us += 1e3 * *ms;
  }
  executor.watch(nullptr);
  const auto steps = static_cast<double>(test.steps);
  const auto costs = costs_of(executor, test);
  split.parts = {part_of(bench, executor, "attention", probe.attention_us / steps, costs.attention),
                 part_of(bench, executor, "experts", probe.experts_us / steps, costs.experts),
                 part_of(bench, executor, "head", probe.head_us / steps, costs.head)};
  double busy = 0;
  for (const StepPart& part : split.parts) busy += part.us;
  split.step_us = std::max(busy, all_us / steps);
  split.host_us = split.step_us - busy;
  return {};
}

/// Which of the parts a kernel's work belongs to, null where to none, and its share of its cost.
struct KernelRole {
  PartCost StepCosts::*part = nullptr;
  double share = 0;
};

KernelRole role_of(const std::string& kernel, const model::ModelConfig& model) {
  const auto starts = [&](const char* with) { return kernel.starts_with(with); };
  const double q = static_cast<double>(model.query_width());
  const double qkv = q + 2 * static_cast<double>(model.kv_width());
  if (starts("gate_up")) return {&StepCosts::experts, 2.0 / 3};
  if (starts("down")) return {&StepCosts::experts, 1.0 / 3};
  if (starts("lm_head")) return {&StepCosts::head, 1};
  if (starts("qkv")) return {&StepCosts::attention, qkv / (qkv + q)};
  if (starts("o:")) return {&StepCosts::attention, q / (qkv + q)};
  return {};
}

Expected<void> split_on_gpu(const Workbench& bench, engine::Executor& executor,
                            const SplitTest& test, DecodeBatch& batch, TimeSplit& split) {
  Expected<double> ran = 0.0;
  double all_us = 0;
  const auto trace = lab::trace_gpu([&] {
    for (std::int64_t i = 0; i < test.steps && ran; ++i) {
      ran = batch.step_ms();
      if (ran) all_us += 1e3 * *ran;
    }
  });
  if (!trace) return trace.error();
  if (!ran) return ran.error();
  const auto shares = lab::kernel_shares(*trace, test.steps);
  if (!shares) return shares.error();
  const auto costs = costs_of(executor, test);
  double busy = 0;
  for (const lab::KernelShare& share : *shares) {
    if (share.name == "idle") {
      split.idle_us = share.us_per_step;
      continue;
    }
    busy += share.us_per_step;
    const KernelRole role = role_of(share.name, executor.config());
    if (role.part == nullptr) {
      split.parts.push_back({.name = share.name, .us = share.us_per_step});
      continue;
    }
    PartCost cost = costs.*role.part;
    cost.bytes *= role.share;
    cost.work.dense_flops *= role.share;
    cost.work.expert_flops *= role.share;
    cost.work.attention_flops = 0;
    split.parts.push_back(part_of(bench, executor, share.name, share.us_per_step, cost));
  }
  const double traced = busy + split.idle_us;
  split.step_us = std::max(traced, all_us / static_cast<double>(test.steps));
  split.host_us = split.step_us - traced;
  return {};
}

}  // namespace

Expected<TimeSplit> split_time(const Workbench& bench, engine::Executor& executor,
                               const SplitTest& test) {
  constexpr std::int64_t kWarmUp = 4;
  DecodeBatch batch(bench, executor, test.batch);
  if (const auto filled = batch.fill(test.context); !filled) return filled.error();
  const StepBudget few{.least = kWarmUp, .most = kWarmUp, .seconds = 0};
  if (const auto warm = time_steps(bench, batch, few); !warm) return warm.error();
  const StepBudget exactly{.least = test.steps, .most = test.steps, .seconds = 0};
  const auto unwatched = time_steps(bench, batch, exactly);
  if (!unwatched) return unwatched.error();
  TimeSplit split{.batch = test.batch, .context = test.context, .steps = test.steps};
  split.unwatched_step_us = 1e3 * stats::median(*unwatched);
  const auto done = bench.is_gpu() ? split_on_gpu(bench, executor, test, batch, split)
                                   : split_on_cpu(bench, executor, test, batch, split);
  if (!done) return done.error();
  return split;
}

}  // namespace gauntlet::study
