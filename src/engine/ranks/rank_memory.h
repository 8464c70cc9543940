// What a rank allocates on a CPU, from the shapes alone.
#pragma once
#include "engine/options.h"
#include "engine/ranks/group_parts.h"
#include "engine/ranks/mesh.h"
#include "model/weights.h"

namespace gauntlet::engine::inline on_ranks {

struct RankMemory {
  std::int64_t weight_bytes = 0;  // packed for the kernels
  std::int64_t seen_bytes = 0;    // of the files, whose embedding is read where it lies
};
/// The weights are the whole model's; none is read.
Expected<RankMemory> memory_of(const model::ModelWeights& weights, const Mesh& mesh, int rank,
                               RankSums sums, const EngineOptions& options = {});

}  // namespace gauntlet::engine::inline on_ranks
