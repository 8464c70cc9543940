// Widths of a draft head's buffers, and where a launch's inputs lie.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/cuda/draft/draft_head.h"
#include "kernels/cuda/attention/decode_attention.h"
#include "kernels/cuda/product/fragments.h"

namespace gauntlet::engine::cuda::inline draft {

namespace head {

inline std::int64_t stride(std::int64_t cols) {
  constexpr std::int64_t kBlock = kernels::cuda::kBlockCols;
  return (cols + kBlock - 1) / kBlock * kBlock;
}
inline std::int64_t width(const model::EagleHeadConfig& config) {
  return config.num_heads * config.head_dim;
}
inline std::int64_t kv_width(const model::EagleHeadConfig& config) {
  return config.num_kv_heads * config.head_dim;
}
/// Tables are as long as graphs are made for, which serve a text of up to 1,024 positions at first.
inline int table_stride(std::int64_t pages) {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 16))));
}
inline kernels::cuda::DecodeShape decode_shape(const model::EagleHeadConfig& config, int rows,
                                               int max_context, int num_sms) {
  return {.num_sequences = rows,
          .num_kv_heads = static_cast<int>(config.num_kv_heads),
          .max_context = max_context,
          .num_sms = num_sms};
}

}  // namespace head

/// Places things one behind the other; without a base it only measures.
class DraftHead::Layout {
 public:
  explicit Layout(std::uint8_t* base) : base_(base) {}
  template <class T>
  T* take(std::int64_t count) {
    std::uint8_t* at = base_ + bytes_;
    bytes_ +=
        (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(at);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kAlignment = 1024;  // of the tiles that bulk copies read
  std::uint8_t* base_;
  std::int64_t bytes_ = 0;
};

struct DraftHead::Inputs {
  std::uint16_t* residuals = nullptr;     // [rows, stride(features)]
  std::uint16_t* embeddings = nullptr;    // [rows, hidden], where they are not on the device
  std::int32_t* tokens = nullptr;         // [rows]
  std::int32_t* slots = nullptr;          // [rows]; -1: the residuals came along
  std::int32_t* context = nullptr;        // [rows]
  std::int32_t* table = nullptr;          // [rows, table_stride]
  std::int32_t* last_rows = nullptr;      // [texts]
  std::int32_t* guess_context = nullptr;  // [guesses, texts]
  std::int32_t* guess_table = nullptr;    // [texts, table_stride]
  std::int64_t bytes = 0;
};

}  // namespace gauntlet::engine::cuda::inline draft
