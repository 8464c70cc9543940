#include "engine/cuda/kv_memory.h"

#include <cstdlib>

#include "engine/steps/step_data.h"

namespace gauntlet::engine::cuda {
namespace {

using kernels::cuda::kHeadDim;
using kernels::cuda::kPageTokens;
using kernels::cuda::KvFormat;

KvFormat format_of(KvType type) { return type == KvType::fp8 ? KvFormat::fp8 : KvFormat::bf16; }

/// Bytes of a page's keys (or values), and of their scales.
struct PageBytes {
  std::int64_t elements;
  std::int64_t scales;
};
PageBytes page_bytes(const model::ModelConfig& config, KvType type) {
  const std::int64_t rows = config.num_kv_heads * kPageTokens;
  return {.elements = rows * kHeadDim * kv_element_bytes(format_of(type)),
          .scales = type == KvType::fp8 ? rows * static_cast<std::int64_t>(sizeof(float)) : 0};
}

}  // namespace

std::int64_t KvMemory::position_bytes(const model::ModelConfig& config, KvType type) {
  const PageBytes page = page_bytes(config, type);
  return 2 * (page.elements + page.scales) / kPageTokens;
}

std::int64_t KvMemory::bytes_for(const model::ModelConfig& config, const KvPoolConfig& pool,
                                 KvType type) {
  std::int64_t bytes = 0;
  for (const model::AttentionSpan span : config.attention) {
    const std::int64_t pages =
        engine::group_of(span) == KvGroup::full ? pool.full_pages : pool.sliding_pages;
    bytes += (pages + 1) * kPageTokens * position_bytes(config, type);
  }
  return bytes;
}

KvMemory::KvMemory(const model::ModelConfig& config, const KvPoolConfig& pool, KvType type)
    : memory_(bytes_for(config, pool, type)),
      pages_{static_cast<std::int32_t>(pool.full_pages),
             static_cast<std::int32_t>(pool.sliding_pages)} {
  cuda_check(cudaMemset(memory_.data(), 0, static_cast<std::size_t>(memory_.bytes())));
  const PageBytes page = page_bytes(config, type);
  std::uint8_t* at = memory_.data();
  const auto take = [&](std::int64_t bytes) {
    std::uint8_t* taken = at;
    at += bytes;
    return taken;
  };
  for (const model::AttentionSpan span : config.attention) {
    groups_.push_back(engine::group_of(span));
    const std::int64_t pages = padding_page(groups_.back()) + 1;
    kernels::cuda::KvCache& layer = layers_.emplace_back();
    layer.format = format_of(type);
    layer.num_pages = static_cast<int>(pages);
    layer.num_kv_heads = static_cast<int>(config.num_kv_heads);
    layer.k = take(pages * page.elements);
    layer.v = take(pages * page.elements);
    if (page.scales > 0) {
      layer.k_scale = reinterpret_cast<float*>(take(pages * page.scales));
      layer.v_scale = reinterpret_cast<float*>(take(pages * page.scales));
    }
  }
}

void KvMemory::copy(std::span<const PageCopy> copies, cudaStream_t stream) const {
  for (std::size_t first = 0, end = 0; first < copies.size(); first = end) {
    const PageCopy& copy = copies[first];
    // Neighbours go to neighbours when a contiguous sequence is copied: one move for all of them.
    for (end = first + 1; end < copies.size(); ++end) {
      const auto further = static_cast<std::int32_t>(end - first);
      const PageCopy& next = copies[end];
      const bool apart = further < std::abs(copy.to - copy.from);  // else a move would overlap
      if (!apart || next.group != copy.group || next.from != copy.from + further ||
          next.to != copy.to + further) {
        break;
      }
    }
    const auto pages = static_cast<std::int64_t>(end - first);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if (groups_[l] != copy.group) continue;
      const kernels::cuda::KvCache& layer = layers_[l];
      const auto move = [&](void* base, std::int64_t bytes) {
        auto* memory = static_cast<std::uint8_t*>(base);
        cuda_check(cudaMemcpyAsync(memory + copy.to * bytes, memory + copy.from * bytes,
                                   static_cast<std::size_t>(pages * bytes),
                                   cudaMemcpyDeviceToDevice, stream));
      };
      const std::int64_t rows = std::int64_t{layer.num_kv_heads} * kPageTokens;
      const std::int64_t elements = rows * kHeadDim * kv_element_bytes(layer.format);
      move(layer.k, elements);
      move(layer.v, elements);
      if (layer.k_scale != nullptr) {
        move(layer.k_scale, rows * static_cast<std::int64_t>(sizeof(float)));
        move(layer.v_scale, rows * static_cast<std::int64_t>(sizeof(float)));
      }
    }
  }
}

}  // namespace gauntlet::engine::cuda
