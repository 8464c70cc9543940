// Attention of any number of new tokens per sequence over paged keys and values: prompts, chunks of
// prompts, single tokens, mixed.
#pragma once
#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline attention {

/// A tile's rows are the group's query heads of neighbouring tokens, which share keys and values.
inline constexpr int kPrefillRows = 128;

/// Tiles are numbered without the device's counts: sequence s begins at first_token[s] / tokens of
/// a tile + s, which leaves every sequence as many as it needs and at most one more.
constexpr int prefill_first_tile(int first_token, int sequence, int tile_tokens) {
  return first_token / tile_tokens + sequence;
}
constexpr int prefill_tiles(const AttentionBatch& batch, int tile_tokens) {
  return prefill_first_tile(batch.num_tokens, batch.num_sequences, tile_tokens);
}

void prefill_attention(const Attention& attention, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline attention
