#include <algorithm>

#include "core/machine/machine.h"
#include "engine/cpu/runner.h"
#include "engine/steps/cpu_executor.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline steps {
namespace {

/// Of the machine's memory: a system grants what is not touched yet.
constexpr std::int64_t kMemoryShareOfKv = 4;

/// A head smaller than this stays in a cache, where reading it costs little.
constexpr std::int64_t kScreenedHeadBytes = 8 << 20;

/// The bounds are those of dense weights; and bytes are no less than MXFP4.
bool is_worth_screening(const model::Matrix& head) {
  return head.type != model::WeightType::mxfp4 &&
         head.rows * head.row_bytes() >= kScreenedHeadBytes;
}

}  // namespace

std::int64_t default_positions(const model::ModelConfig& shape, KvType kv,
                               std::int64_t max_sequences, std::int64_t memory_bytes) {
  const std::int64_t full_layers = std::ranges::count(shape.attention, model::AttentionSpan::full);
  const std::int64_t element_bytes = kv == KvType::f32 ? 4 : 2;
  const std::int64_t position_bytes =
      std::max<std::int64_t>(1, full_layers * 2 * shape.kv_width() * element_bytes);
  return std::clamp(memory_bytes / position_bytes, shape.max_positions,
                    shape.max_positions * std::max<std::int64_t>(1, max_sequences));
}

Expected<std::unique_ptr<Executor>> make_cpu_executor(const model::ModelWeights& weights,
                                                      const CpuExecutorConfig& config) {
  auto plan = resolve(config.options);
  if (!plan) return plan.error();
  if (const auto known = check_export_layers(config.export_layers, weights.config); !known) {
    return known.error();
  }
  if (!is_worth_screening(weights.lm_head)) plan->head = HeadKind::full;
  auto threads = std::make_unique<ThreadPool>(plan->cpus);
  auto packed = cpu::pack_model(weights, *plan, *threads, config.progress);
  if (!packed) return packed.error();
  plan->screen_bytes = packed->screen.bytes();
  const model::ModelConfig& shape = weights.config;
  const std::int64_t tokens =
      config.max_tokens > 0
          ? config.max_tokens
          : default_positions(shape, plan->kv, config.max_sequences,
                              read_machine(false).cpu.memory_bytes / kMemoryShareOfKv);
  const KvPoolConfig pool = paged_pool({.page_tokens = kernels::cpu::kPageTokens,
                                        .window = shape.sliding_window,
                                        .positions = tokens,
                                        .sequences = config.max_sequences,
                                        .step_tokens = config.max_batch_tokens});
  return std::unique_ptr<Executor>(std::make_unique<PooledExecutor>(
      pool, cpu::make_runner({.plan = *plan,
                              .pool = pool,
                              .max_tokens = config.max_batch_tokens,
                              .threads = std::move(threads),
                              .model = std::move(*packed),
                              .rank_sum = config.rank_sum,
                              .export_layers = config.export_layers})));
}

}  // namespace gauntlet::engine::inline steps
