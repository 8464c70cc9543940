#include "engine/cpu/kv_store.h"

#include <cstring>

#include "core/check.h"
#include "engine/steps/step_data.h"
#include "kernels/cpu/path_pages.h"

namespace gauntlet::engine::cpu {
namespace {

using kernels::cpu::kPageTokens;

std::uint16_t round_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

KvStore::KvStore(const model::ModelConfig& config, const KvPoolConfig& pool, KvType type)
    : head_dim_(config.head_dim),
      element_bytes_(type == KvType::f32 ? 4 : 2),
      head_bytes_(config.head_dim * kPageTokens * element_bytes_),
      page_bytes_(config.num_kv_heads * head_bytes_) {
  check(pool.page_tokens == kPageTokens, "the CPU cache has pages of 16 positions");
  for (const model::AttentionSpan span : config.attention) {
    groups_.push_back(engine::group_of(span));
    const std::int64_t pages =
        groups_.back() == KvGroup::full ? pool.full_pages : pool.sliding_pages;
    Layer& layer = layers_.emplace_back();
    layer.keys.resize(static_cast<std::size_t>(pages * page_bytes_));
    layer.values.resize(static_cast<std::size_t>(pages * page_bytes_));
  }
}

void KvStore::write(std::int64_t layer, std::int32_t page, std::int64_t head, int slot,
                    const float* k, const float* v) {
  const std::int64_t at = page * page_bytes_ + head * head_bytes_;
  std::uint8_t* keys = layers_[layer].keys.data() + at;
  std::uint8_t* values = layers_[layer].values.data() + at;
  if (element_bytes_ == 4) {
    auto* key_lanes = reinterpret_cast<float*>(keys) + slot;
    for (std::int64_t d = 0; d < head_dim_; ++d) key_lanes[d * kPageTokens] = k[d];
    std::memcpy(values + slot * head_dim_ * 4, v, static_cast<std::size_t>(head_dim_) * 4);
  } else {
    auto* key_pairs = reinterpret_cast<std::uint16_t*>(keys) + slot * 2;
    auto* value_pairs =
        reinterpret_cast<std::uint16_t*>(values) + slot / 2 * head_dim_ * 2 + slot % 2;
    for (std::int64_t d = 0; d < head_dim_; d += 2) {
      std::uint16_t* pair = key_pairs + d * kPageTokens;
      pair[0] = round_bf16(k[d]);
      pair[1] = round_bf16(k[d + 1]);
      value_pairs[2 * d] = round_bf16(v[d]);
      value_pairs[2 * d + 2] = round_bf16(v[d + 1]);
    }
  }
}

void KvStore::copy(const PageCopy& copy) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (groups_[l] != copy.group) continue;
    for (HostArray<std::uint8_t>* half : {&layers_[l].keys, &layers_[l].values}) {
      std::memcpy(half->data() + copy.to * page_bytes_, half->data() + copy.from * page_bytes_,
                  static_cast<std::size_t>(page_bytes_));
    }
  }
}

void KvStore::move(const RowMove& move) {
  const kernels::cpu::PageLayout layout{
      static_cast<int>(head_dim_),
      element_bytes_ == 4 ? kernels::cpu::KvType::f32 : kernels::cpu::KvType::bf16};
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (groups_[l] != move.group) continue;
    const auto page = [&](std::int64_t number, std::int64_t head_at) {
      const std::int64_t at = number * page_bytes_ + head_at;
      return kernels::cpu::Page{layers_[l].keys.data() + at, layers_[l].values.data() + at};
    };
    for (std::int64_t head_at = 0; head_at < page_bytes_; head_at += head_bytes_) {
      const kernels::cpu::Page from = page(move.from_page, head_at);
      kernels::cpu::copy_slot(layout, {from.keys, from.values}, move.from_slot,
                              page(move.to_page, head_at), move.to_slot);
    }
  }
}

const std::uint8_t* KvStore::keys(std::int64_t layer, std::int64_t head) const {
  return layers_[layer].keys.data() + head * head_bytes_;
}
const std::uint8_t* KvStore::values(std::int64_t layer, std::int64_t head) const {
  return layers_[layer].values.data() + head * head_bytes_;
}

}  // namespace gauntlet::engine::cpu
