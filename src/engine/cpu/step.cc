#include "engine/cpu/step.h"

#include <bit>

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
                     .context = item.context,
                     .tables = {data.table(i, KvGroup::full), data.table(i, KvGroup::sliding)}});
    for (std::int32_t t = 0; item.exports && t < item.num_tokens; ++t) {
      exported.push_back(item.first_token + t);
    }
    const auto index = static_cast<std::int32_t>(i);
    item_of.insert(item_of.end(), static_cast<std::size_t>(item.num_tokens), index);
    data.is_tree(item) ? add_tree(data, index) : add_branch(data, index);
  }
  for (const StepToken& token : data.tokens) {
    ids.push_back(token.id);
    positions.push_back(token.position);
    slots.push_back(token.slot);
  }
}

void Step::add_branch(const StepData& data, std::int32_t index) {
  const StepData::Item& item = data.items[static_cast<std::size_t>(index)];
  branches.push_back(
      {.item = index, .first = std::ssize(branch_tokens), .num_tokens = item.num_tokens});
  for (std::int32_t t = 0; t < item.num_tokens; ++t) branch_tokens.push_back(item.first_token + t);
}

/// A branch for each leaf, with those tokens of its path that no earlier branch has.
void Step::add_tree(const StepData& data, std::int32_t index) {
  const StepData::Item& item = data.items[static_cast<std::size_t>(index)];
  const auto seen = std::span(data.ancestors)
                        .subspan(static_cast<std::size_t>(item.first_token),
                                 static_cast<std::size_t>(item.num_tokens));
  std::uint64_t inner = 0;  // tokens that some other sees
  for (std::size_t t = 0; t < seen.size(); ++t) inner |= seen[t] & ~(std::uint64_t{1} << t);
  std::uint64_t taken = 0;
  for (std::size_t leaf = 0; leaf < seen.size(); ++leaf) {
    if ((inner >> leaf & 1) != 0) continue;
    Branch branch{
        .item = index, .first = std::ssize(branch_tokens), .first_slot = std::ssize(path_slots)};
    for (std::uint64_t rest = seen[leaf]; rest != 0; rest &= rest - 1) {
      const int token = std::countr_zero(rest);
      path_slots.push_back(item.context + token);
      if ((taken >> token & 1) == 0) branch_tokens.push_back(item.first_token + token);
    }
    taken |= seen[leaf];
    branch.num_tokens = std::ssize(branch_tokens) - branch.first;
    branch.num_slots = std::ssize(path_slots) - branch.first_slot;
    // The first branch of all may lie at its positions: then there is nothing to bring together.
    const bool is_in_place = path_slots.back() == item.context + branch.num_slots - 1;
    if (is_in_place) path_slots.resize(static_cast<std::size_t>(branch.first_slot));
    if (is_in_place) branch.num_slots = 0;
    branches.push_back(branch);
  }
}

kernels::cpu::TreePath Step::path(const Branch& branch) const {
  return {.first = items[static_cast<std::size_t>(branch.item)].context,
          .slots = std::span(path_slots)
                       .subspan(static_cast<std::size_t>(branch.first_slot),
                                static_cast<std::size_t>(branch.num_slots))};
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
