#include "engine/ranks/rank_memory.h"

#include "engine/cpu/packed_model.h"
#include "model/slice.h"

namespace gauntlet::engine::inline on_ranks {

Expected<RankMemory> memory_of(const model::ModelWeights& weights, const Mesh& mesh, int rank,
                               RankSums sums, const EngineOptions& options) {
  auto plan = resolve(options);
  if (!plan) return plan.error();
  plan->head = HeadKind::full;  // ranks do not screen
  const model::ModelWeights part = model::slice_weights(
      weights, shard_of(weights.config, mesh, rank,
                        sums == RankSums::ordered ? model::Cut::outputs : model::Cut::inputs));
  return RankMemory{.weight_bytes = cpu::packed_bytes(part, *plan), .seen_bytes = part.file_bytes};
}

}  // namespace gauntlet::engine::inline on_ranks
