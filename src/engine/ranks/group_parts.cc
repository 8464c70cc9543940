#include "engine/ranks/group_parts.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace gauntlet::engine::inline on_ranks {
namespace {

using model::Cut;
using model::Range;
using model::Slice;

void require(const Expected<void>& done) {
  if (!done) throw RankFailure(done.error().message);
}

}  // namespace

GroupParts::GroupParts(ranks::Group& world, const Mesh& mesh, const model::ModelConfig& whole,
                       RankSums sums)
    : world_(world), mesh_(mesh), whole_(whole), sums_(sums), place_(place_of(mesh, world.rank())) {
  const Cut cut = sums == RankSums::ordered ? Cut::outputs : Cut::inputs;
  own_ = shard_of(whole, mesh, world.rank(), cut);
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const MeshPlace place = place_of(mesh, rank);
    if (place.stage != place_.stage) continue;
    const Slice slice = shard_of(whole, mesh, rank, cut);
    of_stage_.push_back(slice);
    if (place.replica == place_.replica) of_attention_.push_back(slice);
    if (place.ep == place_.ep) of_experts_.push_back(slice);
  }
}

Expected<std::shared_ptr<GroupParts>> GroupParts::make(ranks::Group& world, const Mesh& mesh,
                                                       const model::ModelConfig& whole,
                                                       RankSums sums) {
  check(world.size() == mesh.ranks(), "a mesh has as many ranks as its group");
  std::shared_ptr<GroupParts> parts(new GroupParts(world, mesh, whole, sums));
  auto stage = world.split(parts->place_.stage);
  if (!stage) return stage.error();
  auto attention = (*stage)->split(parts->place_.replica);
  if (!attention) return attention.error();
  auto experts = (*stage)->split(parts->place_.ep);
  if (!experts) return experts.error();
  parts->stage_ = std::move(*stage);
  parts->attention_ = std::move(*attention);
  parts->experts_ = std::move(*experts);
  return parts;
}

void GroupParts::gather_blocks(ranks::Group& group, const std::vector<Block>& blocks, float* rows,
                               std::int64_t stride) {
  if (group.size() == 1) return;
  const auto self = static_cast<std::size_t>(group.rank());
  std::vector<std::size_t> sizes;
  std::size_t total = 0;
  for (const Block& block : blocks) {
    total += static_cast<std::size_t>(block.count());
    sizes.push_back(static_cast<std::size_t>(block.count()) * sizeof(float));
  }
  sent_.resize(static_cast<std::size_t>(blocks[self].count()));
  received_.resize(total);
  const auto each_row = [&](const Block& block, float* packed, auto&& copy) {
    const auto bytes = static_cast<std::size_t>(block.columns.size()) * sizeof(float);
    for (std::int64_t r = block.rows.begin; r < block.rows.end; ++r) {
      if (bytes > 0) copy(rows + r * stride + block.columns.begin, packed, bytes);
      packed += block.columns.size();
    }
    return packed;
  };
  each_row(blocks[self], sent_.data(), [](const float* row, float* packed, std::size_t bytes) {
    std::memcpy(packed, row, bytes);
  });
  require(group.all_gather(std::as_bytes(std::span(sent_)), sizes,
                           std::as_writable_bytes(std::span(received_))));
  float* packed = received_.data();
  for (const Block& block : blocks) {
    packed = each_row(block, packed, [](float* row, const float* from, std::size_t bytes) {
      std::memcpy(row, from, bytes);
    });
  }
}

void GroupParts::gather(PartsOf of, float* rows, std::int64_t num_rows, std::int64_t stride) {
  ranks::Group& group = of == PartsOf::logits      ? *stage_
                        : of == PartsOf::activated ? *experts_
                                                   : *attention_;
  const std::vector<Slice>& slices = of == PartsOf::logits      ? of_stage_
                                     : of == PartsOf::activated ? of_experts_
                                                                : of_attention_;
  std::vector<Block> blocks;
  for (const Slice& slice : slices) {
    Range columns;
    switch (of) {
      case PartsOf::attended:
        columns = {slice.heads.begin * whole_.head_dim, slice.heads.end * whole_.head_dim};
        break;
      case PartsOf::attention_out:
        columns = slice.o_outputs;
        break;
      case PartsOf::activated:
        columns = slice.intermediate;
        break;
      case PartsOf::logits:
        columns = slice.vocab;
        break;
    }
    blocks.push_back({.rows = {0, num_rows}, .columns = columns});
  }
  gather_blocks(group, blocks, rows, stride);
}

void GroupParts::gather_experts(float* rows, std::int64_t stride,
                                std::span<const std::int32_t> first_slot) {
  std::vector<Block> blocks;
  for (const Slice& slice : of_stage_) {
    blocks.push_back({.rows = {first_slot[static_cast<std::size_t>(slice.experts.begin)],
                               first_slot[static_cast<std::size_t>(slice.experts.end)]},
                      .columns = slice.down_outputs});
  }
  gather_blocks(*stage_, blocks, rows, stride);
}

void GroupParts::receive_rows(float* rows, std::int64_t num_rows) {
  const auto count = static_cast<std::size_t>(num_rows * whole_.hidden);
  require(world_.receive(world_.rank() - mesh_.stage_ranks(),
                         std::as_writable_bytes(std::span(rows, count))));
}

void GroupParts::send_rows(const float* rows, std::int64_t num_rows) {
  const auto count = static_cast<std::size_t>(num_rows * whole_.hidden);
  require(world_.send(world_.rank() + mesh_.stage_ranks(), std::as_bytes(std::span(rows, count))));
}

void GroupParts::add_up(const PartialRows& part, void* stream) {
  check(stream == nullptr, "groups of CPUs have no streams");
  ranks::Group& group = part.of == SumOf::attention ? *attention_ : *stage_;
  if (group.size() == 1) return;
  require(group.all_sum(std::span(part.values, static_cast<std::size_t>(part.count()))));
}

}  // namespace gauntlet::engine::inline on_ranks
