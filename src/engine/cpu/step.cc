#include "engine/cpu/step.h"

namespace gauntlet::engine::cpu {
namespace {

std::int64_t padded_experts(const model::ModelConfig& config) {
  return (config.num_experts + kernels::cpu::kGroupRows - 1) / kernels::cpu::kGroupRows *
         kernels::cpu::kGroupRows;
}

}  // namespace

Step::Step(const StepData& data) : experts_per_token(data.experts_per_token) {
  for (std::size_t i = 0; i < data.items.size(); ++i) {
    const StepData::Item& item = data.items[i];
    items.push_back({.first_token = item.first_token,
                     .num_tokens = item.num_tokens,
                     .tables = {data.table(i, KvGroup::full), data.table(i, KvGroup::sliding)}});
    for (std::int32_t t = 0; item.exports && t < item.num_tokens; ++t) {
      exported.push_back(item.first_token + t);
    }
    item_of.insert(item_of.end(), static_cast<std::size_t>(item.num_tokens),
                   static_cast<std::int32_t>(i));
  }
  for (const StepToken& token : data.tokens) {
    ids.push_back(token.id);
    positions.push_back(token.position);
    slots.push_back(token.slot);
  }
}

Buffers::Private::Private(const model::ModelConfig& config)
    : normed(kRepeatedTokens, config.hidden),
      router(static_cast<std::size_t>(kRepeatedTokens * padded_experts(config))),
      chosen(kRepeatedTokens * config.experts_per_token),
      chosen_weights(kRepeatedTokens * config.experts_per_token),
      tile(kExpertTile * 2 * kernels::cpu::kBlock),
      attention(2 * kernels::cpu::kAttentionRows * config.head_dim) {}

Buffers::Buffers(const model::ModelConfig& config, std::int64_t max_tokens, int num_workers)
    : Buffers(config, {.attended = config.query_width(), .activated = config.intermediate},
              max_tokens, num_workers) {}

Buffers::Buffers(const model::ModelConfig& config, const InputWidths& widths,
                 std::int64_t max_tokens, int num_workers)
    : x(static_cast<std::size_t>(max_tokens * config.hidden)),
      partial(static_cast<std::size_t>(max_tokens * config.hidden)),
      normed(max_tokens, config.hidden),
      qkv(max_tokens, config.query_width() + 2 * config.kv_width()),
      attended(max_tokens, widths.attended),
      activated(max_tokens * config.experts_per_token, widths.activated),
      gate_up(max_tokens * config.experts_per_token, 2 * config.intermediate),
      expert_out(max_tokens * config.experts_per_token, config.hidden),
      cos(static_cast<std::size_t>(max_tokens * config.head_dim / 2)),
      sin(static_cast<std::size_t>(max_tokens * config.head_dim / 2)),
      router(static_cast<std::size_t>(max_tokens * padded_experts(config))),
      chosen(max_tokens * config.experts_per_token),
      chosen_weights(max_tokens * config.experts_per_token),
      expert_tokens(config.num_layers * config.num_experts),
      activated_experts(static_cast<std::size_t>(config.num_experts)) {
  for (int worker = 0; worker < num_workers; ++worker) workers.emplace_back(config);
}

}  // namespace gauntlet::engine::cpu
