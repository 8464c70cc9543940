#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "engine/cuda/kv_memory.h"
#include "engine/cuda/ranks/nccl_sum.h"
#include "engine/cuda/ranks/peer_sum.h"
#include "engine/cuda/runner.h"
#include "engine/cuda/sizing.h"
#include "engine/steps/cuda_rank.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {
namespace {

/// What rank 0 was asked for.
struct Limits {
  std::int64_t max_sequences = 0;
  std::int64_t max_tokens = 0;
  std::int64_t max_sequence_tokens = 0;
  std::int64_t max_batch_tokens = 0;
  double gpu_memory = 0;
};

/// Where one rank fails none goes on: the others would wait for it.
template <class T>
Expected<void> all_have(ranks::Group& world, const Expected<T>& own) {
  const auto all = ranks::all_true(world, static_cast<bool>(own));
  if (!own) return own.error();
  if (!all) return all.error();
  if (!*all) return Error{"another rank could not make its part of the model"};
  return {};
}

Expected<void> usable(int device) {
  const std::string reason = no_cuda_executor_reason(device);
  if (reason.empty()) return {};
  return Error{reason};
}

/// Ranks that have this one's GPU, itself among them.
Expected<int> ranks_on_this_gpu(ranks::Group& world, int device) {
  struct Gpu {
    char uuid[16] = {};
  } own;
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device));
  std::memcpy(own.uuid, properties.uuid.bytes, sizeof(own.uuid));
  std::vector<Gpu> all(static_cast<std::size_t>(world.size()));
  const auto told =
      world.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (!told) return told.error();
  int count = 0;
  for (const Gpu& gpu : all) count += std::memcmp(gpu.uuid, own.uuid, sizeof(own.uuid)) == 0;
  return count;
}

RankGroups groups_for(const ranks::Group& world, const model::ModelConfig& whole,
                      const CudaRankConfig& config, std::int64_t tokens) {
  RankGroups groups{.rank = world.rank(),
                    .attention = config.attention,
                    .layers = whole.num_layers,
                    .tokens = tokens,
                    .hidden = whole.hidden,
                    .logit_rows = std::min<std::int64_t>(tokens, kLogitRows),
                    .timeout_s = config.timeout_s,
                    .meeting = config.meeting};
  for (int r = 0; r < world.size(); ++r) {
    groups.vocab.push_back(config.slices[static_cast<std::size_t>(r)].vocab);
    groups.experts.push_back(r);
  }
  return groups;
}

Expected<std::shared_ptr<RankSum>> sum_for(ranks::Group& world, RankGroups groups, int sharing) {
  const int size = world.size();
  const auto alike = ranks::all_true(world, sharing == size || sharing == 1);
  if (!alike) return alike.error();
  if (!*alike) {
    return Error{
        fmt::format("{} ranks share GPUs unevenly: give them one GPU for all, or one each", size),
        ErrorKind::wrong_use};
  }
  if (sharing == size) {
    auto sum = PeerSum::make(world, std::move(groups));
    if (!sum) return sum.error();
    return std::shared_ptr<RankSum>(std::move(*sum));
  }
  auto sum = NcclSum::make(world, std::move(groups));
  if (!sum) return sum.error();
  return std::shared_ptr<RankSum>(std::move(*sum));
}

/// The smallest of all ranks' pools, which is everyone's.
Expected<KvPoolConfig> smallest_pool(ranks::Group& world, KvPoolConfig pool) {
  for (std::int64_t* pages : {&pool.full_pages, &pool.sliding_pages, &pool.run_pages}) {
    const auto least = ranks::all_max(world, -static_cast<double>(*pages));
    if (!least) return least.error();
    *pages = static_cast<std::int64_t>(-*least);
  }
  return pool;
}

Expected<CudaRank> make_rank(ranks::Group& world, const model::ModelWeights& whole,
                             CudaRankConfig config) {
  CudaExecutorConfig& own = config.executor;
  const auto limits = ranks::agree(world, Limits{.max_sequences = own.max_sequences,
                                                 .max_tokens = own.max_tokens,
                                                 .max_sequence_tokens = own.max_sequence_tokens,
                                                 .max_batch_tokens = own.max_batch_tokens,
                                                 .gpu_memory = own.gpu_memory});
  if (!limits) return limits.error();
  own.max_sequences = limits->max_sequences;
  own.max_tokens = limits->max_tokens;
  own.max_sequence_tokens = limits->max_sequence_tokens;
  own.max_batch_tokens = limits->max_batch_tokens;
  if (config.meeting == RankMeeting::on_hosts) own.options.cuda.graphs = Graphs::off;
  if (const auto all = all_have(world, usable(own.device)); !all) return all.error();

  const auto sharing = ranks_on_this_gpu(world, own.device);
  if (!sharing) return sharing.error();
  const std::int64_t tokens = std::max(own.max_batch_tokens, own.max_sequences);
  auto sum = sum_for(world, groups_for(world, whole.config, config, tokens), *sharing);
  if (const auto all = all_have(world, sum); !all) return all.error();
  own.rank_sum = std::move(*sum);
  own.gpu_memory = limits->gpu_memory / *sharing;

  const model::Slice& slice = config.slices[static_cast<std::size_t>(world.rank())];
  const model::ModelWeights part = slice_weights(whole, slice);
  auto sizing = size_cuda_executor(part, own);
  // Behind it no rank looks any more at how much memory is free, and all may take theirs.
  if (const auto all = all_have(world, sizing); !all) return all.error();
  const auto pool = smallest_pool(world, sizing->pool);
  if (!pool) return pool.error();

  CudaRank rank{.runner = nullptr,
                .pool = *pool,
                .kv_bytes = KvMemory::bytes_for(part.config, *pool, sizing->plan.kv)};
  sizing->plan.memory.kv_bytes = rank.kv_bytes;
  Plan plan{
      .expert_weights = sizing->plan.expert_weights, .kv = sizing->plan.kv, .cuda = sizing->plan};
  const auto turn = own.rank_sum->turn();
  auto model = load_device_model(part, sizing->plan, own.progress);
  rank.runner = make_runner({.device = own.device,
                             .plan = std::move(plan),
                             .model = std::move(model),
                             .pool = *pool,
                             .sizes = sizing->buffers,
                             .rank_sum = own.rank_sum,
                             .export_layers = {},
                             .first_logit = slice.vocab.begin});
  return rank;
}

}  // namespace
}  // namespace gauntlet::engine::cuda::inline gpu_ranks

namespace gauntlet::engine::inline steps {

Expected<CudaRank> make_cuda_rank(ranks::Group& world, const model::ModelWeights& weights,
                                  const CudaRankConfig& config) {
  check(std::ssize(config.slices) == world.size(), "each rank has a slice");
  return cuda::make_rank(world, weights, config);
}

}  // namespace gauntlet::engine::inline steps
