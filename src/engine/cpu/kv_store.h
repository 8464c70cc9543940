// The bytes of the KV cache: per layer, pages of sixteen positions, keys turned so that one load
// brings one dimension of sixteen keys. Of bf16, two dimensions of a key and two positions of a
// value share a word, as products of pairs want them. Memory is touched only as pages come into
// use.
#pragma once
#include <cstdint>
#include <vector>

#include "core/host_array.h"
#include "engine/kv/kv_pool.h"
#include "engine/options.h"
#include "model/config.h"

namespace gauntlet::engine::cpu {

class KvStore {
 public:
  KvStore(const model::ModelConfig& config, const KvPoolConfig& pool, KvType type);

  /// Writes one position of one KV head: `slot` is the position within the page.
  void write(std::int64_t layer, std::int32_t page, std::int64_t head, int slot, const float* k,
             const float* v);
  void copy(const PageCopy& copy);
  void move(const RowMove& move);

  const std::uint8_t* keys(std::int64_t layer, std::int64_t head) const;
  const std::uint8_t* values(std::int64_t layer, std::int64_t head) const;
  std::int64_t page_stride_bytes() const { return page_bytes_; }
  /// Keys and values of one position in one layer.
  std::int64_t position_bytes() const { return 2 * page_bytes_ / 16; }
  KvGroup group_of(std::int64_t layer) const { return groups_[layer]; }

 private:
  struct Layer {
    HostArray<std::uint8_t> keys;    // [page][head][head_dim][16]; bf16: [head_dim / 2][16][2]
    HostArray<std::uint8_t> values;  // [page][head][16][head_dim]; bf16: [8][head_dim][2]
  };
  std::int64_t head_dim_;
  std::int64_t element_bytes_;
  std::int64_t head_bytes_;
  std::int64_t page_bytes_;
  std::vector<KvGroup> groups_;
  std::vector<Layer> layers_;
};

}  // namespace gauntlet::engine::cpu
