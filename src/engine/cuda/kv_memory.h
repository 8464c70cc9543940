// The bytes behind the KV pool's pages: for each layer a stretch of keys and one of values. The
// page after the last belongs to nobody: padding writes there.
#pragma once
#include <span>
#include <vector>

#include "core/cuda/memory.h"
#include "engine/kv/kv_pool.h"
#include "engine/options.h"
#include "kernels/cuda/attention/kv_cache.h"
#include "model/config.h"

namespace gauntlet::engine::cuda {

inline std::int64_t pages_of(std::int64_t positions) {
  return pages_for(positions, kernels::cuda::kPageTokens);
}

class KvMemory {
 public:
  KvMemory(const model::ModelConfig& config, const KvPoolConfig& pool, KvType type);

  const kernels::cuda::KvCache& layer(std::size_t index) const { return layers_[index]; }
  KvGroup group_of(std::size_t layer) const { return groups_[layer]; }
  std::int32_t padding_page(KvGroup group) const { return pages_[static_cast<int>(group)]; }
  std::int64_t bytes() const { return memory_.bytes(); }

  void copy(std::span<const PageCopy> copies, cudaStream_t stream) const;

  /// Of one position in one layer, keys and values.
  static std::int64_t position_bytes(const model::ModelConfig& config, KvType type);
  static std::int64_t bytes_for(const model::ModelConfig& config, const KvPoolConfig& pool,
                                KvType type);

 private:
  DeviceMemory memory_;
  std::vector<kernels::cuda::KvCache> layers_;
  std::vector<KvGroup> groups_;
  std::int32_t pages_[kNumKvGroups];
};

}  // namespace gauntlet::engine::cuda
