#include <pthread.h>

#include <algorithm>

#include "core/machine/machine.h"
#include "core/os/threads.h"
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

KvPoolConfig cpu_pool(const model::ModelConfig& whole, KvType kv, const CpuExecutorConfig& config) {
  const std::int64_t tokens =
      config.max_tokens > 0
          ? config.max_tokens
          : default_positions(whole, kv, config.max_sequences,
                              read_machine(false).cpu.memory_bytes / kMemoryShareOfKv);
  return paged_pool({.page_tokens = kernels::cpu::kPageTokens,
                     .window = whole.sliding_window,
                     .positions = tokens,
                     .sequences = config.max_sequences,
                     .step_tokens = config.max_batch_tokens});
}

Expected<std::unique_ptr<Runner>> make_cpu_runner(const model::ModelWeights& weights,
                                                  const CpuExecutorConfig& config,
                                                  const KvPoolConfig& pool) {
  auto plan = resolve(config.options);
  if (!plan) return plan.error();
  if (const auto known = check_export_layers(config.export_layers, weights.config); !known) {
    return known.error();
  }
  if (!is_worth_screening(weights.lm_head) || config.parts != nullptr) plan->head = HeadKind::full;
  const std::vector<int> allowed = allowed_cpus();
  for (std::size_t i = 0; config.first_cpu > 0 && i < plan->cpus.size(); ++i) {
    plan->cpus[i] = allowed[(static_cast<std::size_t>(config.first_cpu) + i) % allowed.size()];
  }
  auto threads = std::make_unique<ThreadPool>(plan->cpus);
  threads->run([](int worker) {
    if (worker > 0) pthread_setname_np(pthread_self(), "engine worker");
  });
  auto packed = cpu::pack_model(weights, *plan, *threads, config.progress);
  if (!packed) return packed.error();
  plan->screen_bytes = packed->screen.bytes();
  return cpu::make_runner({.plan = *plan,
                           .pool = pool,
                           .max_tokens = config.max_batch_tokens,
                           .threads = std::move(threads),
                           .model = std::move(*packed),
                           .rank_sum = config.rank_sum,
                           .parts = config.parts,
                           .export_layers = config.export_layers});
}

Expected<std::unique_ptr<Executor>> make_cpu_executor(const model::ModelWeights& weights,
                                                      const CpuExecutorConfig& config) {
  const auto plan = resolve(config.options);
  if (!plan) return plan.error();
  const KvPoolConfig pool = cpu_pool(weights.config, plan->kv, config);
  auto runner = make_cpu_runner(weights, config, pool);
  if (!runner) return runner.error();
  return std::unique_ptr<Executor>(std::make_unique<PooledExecutor>(pool, std::move(*runner)));
}

}  // namespace gauntlet::engine::inline steps
