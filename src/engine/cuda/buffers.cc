#include "engine/cuda/buffers.h"

namespace gauntlet::engine::cuda {

std::int64_t Buffers::lay_out(const model::ModelConfig& config, const BufferSizes& sizes,
                              std::uint8_t* base) {
  std::int64_t bytes = 0;
  const auto place = [&](auto*& pointer, std::int64_t count) {
    constexpr std::int64_t kAlignment = 1024;  // of the tiles that bulk copies read
    using T = std::remove_reference_t<decltype(*pointer)>;
    pointer = reinterpret_cast<T*>(base + bytes);
    bytes +=
        (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
  };
  const std::int64_t tokens = sizes.tokens, slots = tokens * config.experts_per_token;
  place(x, tokens * config.hidden);
  place(normed, tokens * stride(config.hidden));
  place(qkv, tokens * (config.query_width() + 2 * config.kv_width()));
  place(q, tokens * config.query_width());
  place(attended, tokens * stride(config.query_width()));
  place(attention, sizes.attention_bytes);
  place(arrived, sizes.decode_rows * config.num_kv_heads);
  place(chosen, slots);
  place(chosen_weights, slots);
  place(first_slot, config.num_layers * (config.num_experts + 1));
  place(slot_token, slots);
  place(slot_row, slots);
  place(slot_weight, slots);
  place(routed, 1);
  place(permuted, slots * stride(config.hidden));
  place(activated, slots * stride(config.intermediate));
  place(experts, slots * config.hidden);
  if (sizes.fusion == Fusion::op_by_op || sizes.sums_over_ranks) {
    place(projected, tokens * config.hidden);
  }
  if (sizes.fusion == Fusion::op_by_op) {
    place(unrounded, tokens * config.hidden);
    place(router_logits, tokens * config.num_experts);
    place(gate_up, slots * 2 * config.intermediate);
  }
  place(final_rows, kLogitRows * stride(config.hidden));
  place(logits, kLogitRows * config.vocab);
  place(choices, tokens + (sizes.export_layers > 0 ? kGuessPlaces : 0));
  place(residuals, sizes.export_layers * tokens * config.hidden);
  attention_bytes = sizes.attention_bytes;
  return bytes;
}

std::int64_t Buffers::bytes_for(const model::ModelConfig& config, const BufferSizes& sizes) {
  Buffers measured;
  return measured.lay_out(config, sizes, nullptr);
}

Buffers::Buffers(const model::ModelConfig& config, const BufferSizes& sizes)
    : memory(bytes_for(config, sizes)) {
  cuda_check(cudaMemset(memory.data(), 0, static_cast<std::size_t>(memory.bytes())));
  lay_out(config, sizes, memory.data());
}

}  // namespace gauntlet::engine::cuda
