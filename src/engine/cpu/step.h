// One step on CPUs: its tokens, and the buffers its operations pass along.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/cpu/barrier.h"
#include "engine/cpu/kv_store.h"
#include "engine/cpu/packed_model.h"
#include "engine/cpu/routing.h"
#include "engine/cpu/rows.h"
#include "engine/steps/layer_probe.h"
#include "engine/steps/rank_parts.h"
#include "engine/steps/rank_sum.h"
#include "engine/steps/rope.h"
#include "engine/steps/step_data.h"
#include "kernels/cpu/path_pages.h"

namespace gauntlet::engine::cpu {

struct StepItem {
  std::int64_t first_token = 0;
  std::int64_t num_tokens = 0;
  std::int64_t context = 0;
  std::span<const std::int32_t> tables[kNumKvGroups];
};

/// Tokens of an item of which each sees those before it: all of them, or in a tree some of a path
/// that no other branch has. Their queries are computed together.
struct Branch {
  std::int32_t item = 0;
  std::int64_t first = 0;  // among Step::branch_tokens
  std::int64_t num_tokens = 0;
  /// Of the path that they end, behind the item's context; none where all lies at its position.
  std::int64_t first_slot = 0;  // among Step::path_slots
  std::int64_t num_slots = 0;
};

/// A step's data, by token. What it is made of outlives it.
struct Step {
  explicit Step(const StepData& data);

  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> slots;
  std::vector<std::int32_t> item_of;  // per token
  std::vector<StepItem> items;
  std::vector<Branch> branches;             // in the order of items
  std::vector<std::int32_t> branch_tokens;  // of each branch, in the order of their positions
  std::vector<std::int32_t> path_slots;     // of each branch
  std::vector<std::int32_t> exported;       // tokens whose residuals are wanted
  std::int64_t experts_per_token = 0;       // 0: the model's number

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(ids.size()); }
  kernels::cpu::TreePath path(const Branch& branch) const;

 private:
  void add_branch(const StepData& data, std::int32_t item);
  void add_tree(const StepData& data, std::int32_t item);
};

/// What never changes between steps.
struct Machine {
  const PackedModel& model;
  const Plan& plan;
  const kernels::cpu::KernelTable& kernels;
  const Rope& rope;
  KvStore& kv;
  int workers;
  LayerProbe* probe = nullptr;      // null: nobody watches
  RankSum* rank_sum = nullptr;      // null: what a layer adds is whole
  RankParts* parts = nullptr;       // null: this is the only rank
  std::int64_t attended_begin = 0;  // column of the first of this rank's heads
  std::vector<int> export_layers = {};
};

/// Buffers for up to max_tokens, allocated once.
struct Buffers {
  /// Of what o and down read: of a rank wider than what it computes.
  struct InputWidths {
    std::int64_t attended = 0;
    std::int64_t activated = 0;
  };
  Buffers(const model::ModelConfig& config, std::int64_t max_tokens, int workers);
  Buffers(const model::ModelConfig& config, const InputWidths& widths, std::int64_t max_tokens,
          int workers);

  HostArray<float> x;                // [tokens, hidden]: the residual stream
  HostArray<float> partial;          // the same: this rank's part of what is added; untouched else
  Rows normed;                       // [tokens, hidden]
  Rows qkv;                          // [tokens, query_width + 2 * kv_width]
  Rows attended;                     // [tokens, query_width]
  Rows activated;                    // [tokens * experts_per_token, intermediate]
  Rows gate_up;                      // the same, twice as wide: op by op only
  Rows expert_out;                   // [tokens * experts_per_token, hidden]: op by op only
  HostArray<float> cos, sin;         // [tokens, head_dim / 2]
  HostArray<float> router;           // [tokens, experts rounded up to 16]
  std::vector<std::int32_t> chosen;  // [tokens, experts_per_token]
  std::vector<float> chosen_weights;
  std::vector<float> residuals;             // [export layers, exported tokens, hidden], of one step
  std::vector<std::int64_t> expert_tokens;  // [layers, experts]: of all steps, worker 0's to write
  std::vector<Milestone> activated_experts;  // of this layer, where stages overlap

  /// What a worker keeps to itself: small steps are cheaper to repeat than to share.
  struct Private {
    Private(const model::ModelConfig& config);
    Rows normed;              // [kRepeatedTokens, hidden]
    HostArray<float> router;  // [kRepeatedTokens, experts]
    std::vector<std::int32_t> chosen;
    std::vector<float> chosen_weights;
    Routing routing;
    std::vector<float> tile;                           // gates and ups of one tile of tokens
    std::vector<float> attention;                      // queries, then outputs, of one tile
    std::vector<float> scores;                         // naive attention
    std::vector<std::uint8_t> path_keys, path_values;  // of a path through a tree
  };
  std::vector<Private> workers;
};

/// Up to so many tokens, every worker computes norms and routing for itself: a barrier costs more.
inline constexpr std::int64_t kRepeatedTokens = 4;
/// From so many sequences per worker on, attention is shared out by sequences, not by heads.
inline constexpr std::int64_t kSharedItems = 8;
/// Tokens whose gates and ups stay in the L1 cache until they are activated.
inline constexpr std::int64_t kExpertTile = 64;

}  // namespace gauntlet::engine::cpu
