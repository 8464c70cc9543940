// Mesh: how many ways each part of a model is divided, and what each rank then holds.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"
#include "model/slice.h"

namespace gauntlet::engine::inline on_ranks {

/// A stage of the pipeline (pp) has max(tp, ep) ranks. Attention is divided by heads over tp of
/// them (and repeated where ep is larger), experts over ep (and each cut tp / ep ways where tp is
/// larger). Ranks of a stage follow each other, tp fastest.
struct Mesh {
  int tp = 1;
  int ep = 1;
  int pp = 1;

  /// "tp2,ep4,pp2". cp and dp are known and refused until they exist.
  static Expected<Mesh> parse(std::string_view text);
  std::string text() const;  // "tp2,ep4"; "tp1" where nothing is divided

  int stage_ranks() const { return tp > ep ? tp : ep; }
  int ranks() const { return pp * stage_ranks(); }
  /// Ranks that share one expert.
  int expert_cut() const { return stage_ranks() / ep; }
  bool operator==(const Mesh&) const = default;
};

/// A rank's place. Ranks of one stage that have `replica` in common divide attention; those with
/// `ep` in common divide the same experts.
struct MeshPlace {
  int stage = 0;
  int in_stage = 0;
  int tp = 0;
  int replica = 0;
  int ep = 0;
  int expert_part = 0;  // of expert_cut()
};
MeshPlace place_of(const Mesh& mesh, int rank);

/// Holds an error that says which number does not divide, and the nearest that do.
Expected<void> check_mesh(const model::ModelConfig& config, const Mesh& mesh);

/// What a rank holds. The mesh fits the model.
model::Slice shard_of(const model::ModelConfig& config, const Mesh& mesh, int rank,
                      model::Cut cut = model::Cut::inputs);

/// For so many ranks: heads and experts divided by all of them, or as far as they divide.
Expected<Mesh> mesh_for(const model::ModelConfig& config, int ranks);

/// Of one rank, in bytes: gpt-oss's own types, KV as bf16. What a rank sends for one decoded token,
/// with sums of partial results (`--rank-sums reduced`).
struct RankCosts {
  std::int64_t weight_bytes = 0;
  std::int64_t expert_bytes = 0;       // of those
  std::int64_t kv_position_bytes = 0;  // of all its layers
  std::int64_t sent_bytes = 0;
  std::int64_t meetings = 0;  // calls in which it waits for others
};
RankCosts costs_of(const model::ModelConfig& config, const Mesh& mesh, int rank);

}  // namespace gauntlet::engine::inline on_ranks
