#include "engine/cuda/sizing.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cuda/device.h"
#include "core/text/text.h"
#include "engine/cuda/device_model.h"
#include "engine/cuda/forward.h"
#include "engine/cuda/graphs.h"
#include "engine/cuda/kv_memory.h"

namespace gauntlet::engine::cuda {
namespace {

using kernels::cuda::kPageTokens;

/// A token and seven guesses behind it, of one sequence.
constexpr std::int64_t kLeastDecodeRows = 8;

Expected<GpuTraits> find_gpu(int device) {
  const GpuQuery query = query_gpus();
  if (query.gpus.empty()) return Error{query.reason};
  if (device < 0 || device >= std::ssize(query.gpus)) {
    return Error{fmt::format("there is no GPU {}: this machine has {}", device, query.gpus.size()),
                 ErrorKind::wrong_use};
  }
  cudaDeviceProp properties{};
  cuda_check(cudaSetDevice(device));
  cuda_check(cudaGetDeviceProperties(&properties, device));
  if (properties.major < 8) {
    return Error{fmt::format("{} is sm_{}{}; the CUDA engine needs sm_80 or later", properties.name,
                             properties.major, properties.minor)};
  }
  return GpuTraits{.name = properties.name,
                   .num_sms = properties.multiProcessorCount,
                   .has_bulk_copies = kernels::cuda::prefill_product_available()};
}

Expected<void> check_shape(const model::ModelConfig& config) {
  const std::int64_t group = config.num_heads / config.num_kv_heads;
  if (config.head_dim == kernels::cuda::kHeadDim &&
      (group == 1 || group == 2 || group == 4 || group == 8) && config.hidden % 64 == 0 &&
      config.intermediate % 64 == 0) {
    return {};
  }
  return Error{fmt::format(
      "{}: the CUDA engine takes a head_dim of 64, 1, 2, 4 or 8 query heads per KV head and widths "
      "that are multiples of 64, not {}, {}, {} and {}",
      config.name, config.head_dim, group, config.hidden, config.intermediate)};
}

/// The pool for so many positions in all, and what it takes.
std::int64_t size_pool(CudaSizing& sizing, const model::ModelConfig& shape,
                       const CudaExecutorConfig& config, std::int64_t positions) {
  KvPoolConfig& pool = sizing.pool;
  if (sizing.plan.variants.kv_layout == KvLayout::contiguous) {
    pool.run_pages = std::max<std::int64_t>(1, pages_of(positions / config.max_sequences));
    pool.full_pages = pool.sliding_pages = pool.run_pages * config.max_sequences;
    sizing.plan.reserved_positions = pool.longest();
  } else {
    pool = paged_pool({.page_tokens = kPageTokens,
                       .window = shape.sliding_window,
                       .positions = positions,
                       .sequences = config.max_sequences,
                       .step_tokens = config.max_batch_tokens});
  }
  return KvMemory::bytes_for(shape, pool, sizing.plan.kv);
}

/// Positions to hold in all; 0: what fits.
std::int64_t wanted_positions(const CudaExecutorConfig& config) {
  if (config.options.cuda.kv_layout == KvLayout::contiguous && config.max_sequence_tokens > 0) {
    return config.max_sequence_tokens * config.max_sequences;
  }
  return config.max_tokens;
}

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

}  // namespace

Expected<CudaSizing> size_cuda_executor(const model::ModelWeights& weights,
                                        const CudaExecutorConfig& config) {
  const model::ModelConfig& shape = weights.config;
  const auto gpu = find_gpu(config.device);
  if (!gpu) return gpu.error();
  const auto plan = resolve(config.options, *gpu);
  if (!plan) return plan.error();
  if (const auto fits = check_shape(shape); !fits) return fits.error();
  if (const auto known = check_export_layers(config.export_layers, shape); !known) {
    return known.error();
  }

  const std::int64_t decode_rows = std::max(config.max_sequences, kLeastDecodeRows);
  CudaSizing sizing{.plan = *plan,
                    .buffers = {.tokens = std::max(config.max_batch_tokens, config.max_sequences),
                                .sequences = config.max_sequences,
                                .decode_rows = decode_rows,
                                .attention_bytes = Forward::attention_bytes(
                                    shape, *plan, decode_rows, shape.max_positions),
                                .fusion = plan->fusion,
                                .sums_over_ranks = config.rank_sum != nullptr,
                                .export_layers = std::ssize(config.export_layers)},
                    .pool = {.page_tokens = kPageTokens, .window = shape.sliding_window}};
  std::size_t free_bytes = 0, all_bytes = 0;
  cuda_check(cudaMemGetInfo(&free_bytes, &all_bytes));
  CudaMemory& memory = sizing.plan.memory;
  memory.free_bytes = static_cast<std::int64_t>(free_bytes);
  memory.weight_bytes = device_model_bytes(weights, *plan);
  memory.workspace_bytes = Buffers::bytes_for(shape, sizing.buffers);
  if (plan->variants.graphs == Graphs::on) memory.workspace_bytes += GraphCache::kBudgetBytes;
  const auto usable =
      static_cast<std::int64_t>(static_cast<double>(free_bytes) * config.gpu_memory);

  std::int64_t positions = wanted_positions(config);
  if (positions == 0) {
    constexpr std::int64_t kMany = 1 << 20;
    const std::int64_t least = size_pool(sizing, shape, config, 0);
    const std::int64_t each = (size_pool(sizing, shape, config, kMany) - least) / kMany + 1;
    const std::int64_t left = usable - memory.weight_bytes - memory.workspace_bytes - least;
    // A sequence's last page may be nearly empty.
    const std::int64_t fit = left / each - kPageTokens * config.max_sequences;
    positions =
        std::clamp<std::int64_t>(fit, kPageTokens, shape.max_positions * config.max_sequences);
  }
  memory.kv_bytes = size_pool(sizing, shape, config, positions);
  if (memory.all_bytes() <= usable) return sizing;
  return Error{fmt::format(
      "{} needs {} on the GPU ({} weights, {} workspace, {} KV) and {} may be used ({:.0f}% of {} "
      "free): take fewer sequences, a shorter context, a smaller --chunk or more --gpu-memory",
      shape.name, bytes_text(memory.all_bytes()), bytes_text(memory.weight_bytes),
      bytes_text(memory.workspace_bytes), bytes_text(memory.kv_bytes), bytes_text(usable),
      config.gpu_memory * 100, bytes_text(memory.free_bytes))};
}

}  // namespace gauntlet::engine::cuda

namespace gauntlet::engine::inline steps {

std::string no_cuda_executor_reason(int device) {
  const auto gpu = cuda::find_gpu(device);
  return gpu ? "" : gpu.error().message;
}

}  // namespace gauntlet::engine::inline steps
