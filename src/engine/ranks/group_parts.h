// Sums and parts of a rank, over the groups of a mesh.
#pragma once
#include <memory>
#include <vector>

#include "core/ranks/group.h"
#include "engine/ranks/mesh.h"
#include "engine/steps/rank_parts.h"
#include "engine/steps/rank_sum.h"

namespace gauntlet::engine::inline on_ranks {

/// How products that are divided by their inputs come together. `reduced`: each rank has terms of
/// every sum, which are added over ranks, in another order than one rank's. `ordered`: inputs are
/// gathered, and no sum is divided: one rank's bits, for more traffic.
enum class RankSums { reduced, ordered };

class GroupParts final : public RankParts, public RankSum {
 public:
  /// All ranks of `world` call it; there are as many as the mesh has. It outlives this.
  static Expected<std::shared_ptr<GroupParts>> make(ranks::Group& world, const Mesh& mesh,
                                                    const model::ModelConfig& whole, RankSums sums);

  const model::Slice& slice() const override { return own_; }
  bool is_ordered() const override { return sums_ == RankSums::ordered; }
  bool is_first_stage() const override { return place_.stage == 0; }
  bool is_last_stage() const override { return place_.stage + 1 == mesh_.pp; }
  using RankSum::gather;  // columns on a device, which this one refuses
  void gather(PartsOf of, float* rows, std::int64_t num_rows, std::int64_t stride) override;
  void gather_experts(float* rows, std::int64_t stride,
                      std::span<const std::int32_t> first_slot) override;
  void receive_rows(float* rows, std::int64_t num_rows) override;
  void send_rows(const float* rows, std::int64_t num_rows) override;
  void add_up(const PartialRows& part, void* stream) override;

 private:
  GroupParts(ranks::Group& world, const Mesh& mesh, const model::ModelConfig& whole, RankSums sums);

  /// Where a rank's numbers lie: some columns of some rows.
  struct Block {
    model::Range rows, columns;
    std::int64_t count() const { return rows.size() * columns.size(); }
  };
  void gather_blocks(ranks::Group& group, const std::vector<Block>& blocks, float* rows,
                     std::int64_t stride);

  ranks::Group& world_;
  Mesh mesh_;
  model::ModelConfig whole_;
  RankSums sums_;
  MeshPlace place_;
  model::Slice own_;
  std::unique_ptr<ranks::Group> stage_, attention_, experts_;
  std::vector<model::Slice> of_stage_, of_attention_, of_experts_;  // of the groups' ranks
  std::vector<float> sent_, received_;
};

}  // namespace gauntlet::engine::inline on_ranks
