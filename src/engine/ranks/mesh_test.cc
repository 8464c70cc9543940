#include "engine/ranks/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/check.h"

namespace gauntlet::engine {
namespace {

using model::Cut;
using model::Range;
using model::Slice;
using testing::HasSubstr;

model::ModelConfig shape(const char* name) { return *model::named_shape(name); }

std::string error_of(const Expected<Mesh>& mesh) { return mesh ? "" : mesh.error().message; }
std::string error_of(const Expected<void>& done) { return done ? "" : done.error().message; }

TEST(Mesh, reads_what_it_writes) {
  for (const char* text : {"tp1", "tp2", "ep4", "pp3", "tp2,ep4,pp2", "tp8,ep8"}) {
    const auto mesh = Mesh::parse(text);
    ASSERT_TRUE(mesh) << error_of(mesh);
    EXPECT_EQ(mesh->text(), text);
  }
  EXPECT_EQ(*Mesh::parse("pp2,tp4"), (Mesh{.tp = 4, .pp = 2}));
  EXPECT_EQ(Mesh::parse("tp2,ep4,pp2")->ranks(), 8);
}

TEST(Mesh, refuses_what_is_none) {
  for (const char* text : {"", "tp", "tp0", "2tp", "tp2,", "tp2;ep2", "tp-1", "xp2", "tp2x",
                           "tp99999", "tp99999999999999999999"}) {
    EXPECT_THAT(error_of(Mesh::parse(text)), HasSubstr("tp2,ep4,pp2")) << text;
  }
  EXPECT_THAT(error_of(Mesh::parse("tp2,tp4")), HasSubstr("says tp twice"));
  EXPECT_THAT(error_of(Mesh::parse("cp2")), HasSubstr("cp2 is not there yet"));
  EXPECT_THAT(error_of(Mesh::parse("dp4,ep4")), HasSubstr("dp4 is not there yet"));
  EXPECT_EQ(error_of(Mesh::parse("tp3,ep4")),
            "tp3 and ep4 share ranks, so that one has to divide the other; the nearest that do are "
            "tp2 and tp4");
  EXPECT_THAT(error_of(Mesh::parse("tp4096,pp2")), HasSubstr("8192 ranks"));
}

TEST(Mesh, says_which_number_does_not_divide) {
  const auto config = shape("gpt-oss-120b");
  EXPECT_EQ(error_of(check_mesh(config, {.tp = 3})),
            "gpt-oss-120b: tp3 does not divide 64 query heads and 8 KV heads; the nearest that do "
            "are tp2 and tp4");
  EXPECT_EQ(error_of(check_mesh(config, {.ep = 12})),
            "gpt-oss-120b: ep12 does not divide 128 experts, which stay whole; the nearest that do "
            "are ep8 and ep16");
  EXPECT_EQ(error_of(check_mesh(config, {.ep = 129})),
            "gpt-oss-120b: ep129 does not divide 128 experts, which stay whole; the nearest that "
            "does is ep128");
  EXPECT_THAT(error_of(check_mesh(config, {.pp = 37})), HasSubstr("at most pp36"));
  auto narrow = config;
  narrow.intermediate = 96;
  EXPECT_THAT(error_of(check_mesh(narrow, {.tp = 4})), HasSubstr("has 3 blocks of 32"));
  EXPECT_TRUE(check_mesh(narrow, {.tp = 4, .ep = 4}));
}

TEST(Shards, follow_the_rules_for_gpt_oss) {
  const auto config = shape("gpt-oss-120b");
  const Slice eighth = shard_of(config, {.tp = 8}, 3);
  EXPECT_EQ(eighth.heads, (Range{24, 32}));
  EXPECT_EQ(eighth.kv_heads, (Range{3, 4}));
  EXPECT_EQ(eighth.experts, (Range{0, 128}));
  EXPECT_EQ(eighth.layers, (Range{0, 36}));
  std::map<std::int64_t, int> units, vocabulary;
  for (int rank = 0; rank < 8; ++rank) {
    const Slice slice = shard_of(config, {.tp = 8}, rank);
    EXPECT_EQ(slice.intermediate.begin % 64, 0);
    ++units[slice.intermediate.size() / 64];
    ++vocabulary[slice.vocab.size() / 64];
  }
  EXPECT_EQ(units, (std::map<std::int64_t, int>{{5, 3}, {6, 5}})) << "45 units over 8 ranks";
  EXPECT_EQ(vocabulary, (std::map<std::int64_t, int>{{392, 2}, {393, 6}})) << "3,142 units";

  const Slice doubled = shard_of(config, {.tp = 16}, 5);
  EXPECT_EQ(doubled.heads, (Range{20, 24}));
  EXPECT_EQ(doubled.kv_heads, (Range{2, 3}));
  EXPECT_EQ(shard_of(config, {.tp = 16}, 4).kv_heads, doubled.kv_heads);

  const Slice whole_experts = shard_of(config, {.tp = 8, .ep = 8}, 3);
  EXPECT_EQ(whole_experts.experts, (Range{48, 64}));
  EXPECT_EQ(whole_experts.intermediate, (Range{0, 2880}));
  EXPECT_EQ(shard_of(config, {.pp = 5}, 4).layers, (Range{28, 36}));
}

/// Everything is held, and by how many ranks is what the mesh says.
void holds_everything(const model::ModelConfig& config, const Mesh& mesh, Cut cut) {
  SCOPED_TRACE(config.name + " " + mesh.text());
  const int width = mesh.stage_ranks();
  std::map<std::int64_t, int> heads, kv_heads, vocab, layers, o_outputs;
  std::map<std::pair<std::int64_t, std::int64_t>, int> experts, outputs;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Slice slice = shard_of(config, mesh, rank, cut);
    const MeshPlace place = place_of(mesh, rank);
    EXPECT_EQ(place.stage * width + place.replica * mesh.tp + place.tp, rank);
    EXPECT_EQ(place.stage * width + place.ep * mesh.expert_cut() + place.expert_part, rank);
    EXPECT_GT(slice.layers.size(), 0);
    EXPECT_GT(slice.intermediate.size(), 0);
    EXPECT_EQ(slice.heads.size() % slice.kv_heads.size(), 0);
    const std::int64_t per_kv = config.num_heads / config.num_kv_heads;
    EXPECT_LE(slice.kv_heads.begin * per_kv, slice.heads.begin);
    EXPECT_GE(slice.kv_heads.end * per_kv, slice.heads.end);
    for (auto i = slice.heads.begin; i < slice.heads.end; ++i) ++heads[i];
    for (auto i = slice.kv_heads.begin; i < slice.kv_heads.end; ++i) ++kv_heads[i];
    for (auto i = slice.vocab.begin; i < slice.vocab.end; ++i) ++vocab[i];
    for (auto i = slice.layers.begin; i < slice.layers.end; ++i) ++layers[i];
    for (auto i = slice.o_outputs.begin; i < slice.o_outputs.end; ++i) ++o_outputs[i];
    for (auto e = slice.experts.begin; e < slice.experts.end; ++e) {
      for (auto i = slice.intermediate.begin; i < slice.intermediate.end; ++i) ++experts[{e, i}];
      for (auto i = slice.down_outputs.begin; i < slice.down_outputs.end; ++i) ++outputs[{e, i}];
    }
  }
  const auto each = [](const auto& counts, std::int64_t number, int times) {
    EXPECT_EQ(std::ssize(counts), number);
    for (const auto& [what, count] : counts) EXPECT_EQ(count, times);
  };
  each(heads, config.num_heads, width / mesh.tp * mesh.pp);
  each(vocab, config.vocab, mesh.pp);
  each(layers, config.num_layers, width);
  each(experts, config.num_experts * config.intermediate, mesh.pp);
  EXPECT_EQ(std::ssize(kv_heads), config.num_kv_heads);
  each(o_outputs, config.hidden, cut == Cut::outputs ? width / mesh.tp * mesh.pp : mesh.ranks());
  each(outputs, config.num_experts * config.hidden,
       (cut == Cut::outputs ? 1 : mesh.expert_cut()) * mesh.pp);
}

TEST(Shards, hold_everything_together) {
  model::ModelConfig config{.name = "small",
                            .num_layers = 6,
                            .hidden = 256,
                            .intermediate = 192,
                            .num_heads = 8,
                            .num_kv_heads = 2,
                            .head_dim = 64,
                            .num_experts = 12,
                            .experts_per_token = 4,
                            .vocab = 500};
  int meshes = 0;
  for (const int tp : {1, 2, 4, 8}) {
    for (const int ep : {1, 2, 4, 12}) {
      if (std::max(tp, ep) % std::min(tp, ep) != 0) continue;
      for (const int pp : {1, 2, 5, 6}) {
        const Mesh mesh{.tp = tp, .ep = ep, .pp = pp};
        if (!check_mesh(config, mesh)) continue;
        ++meshes;
        for (const Cut cut : {Cut::inputs, Cut::outputs}) holds_everything(config, mesh, cut);
      }
    }
  }
  EXPECT_GT(meshes, 30);
}

TEST(MeshFor, takes_as_many_ranks_as_are_there) {
  const auto config = shape("gpt-oss-120b");
  EXPECT_EQ(mesh_for(config, 8)->text(), "tp8,ep8");
  EXPECT_EQ(mesh_for(config, 1)->text(), "tp1");
  EXPECT_EQ(mesh_for(config, 12)->text(), "tp4,ep4,pp3");
  EXPECT_THAT(error_of(mesh_for(config, 37)), HasSubstr("the nearest that do are 36 and 64"));
  EXPECT_THAT(error_of(mesh_for(config, 0)), HasSubstr("1 to 4096"));
}

TEST(RankCosts, add_up_to_the_model_and_what_is_held_more_than_once) {
  const auto config = shape("gpt-oss-120b");
  const RankCosts alone = costs_of(config, {}, 0);
  EXPECT_NEAR(static_cast<double>(alone.weight_bytes), 65.2e9, 0.4e9);
  EXPECT_EQ(alone.sent_bytes, 0);
  EXPECT_EQ(alone.meetings, 0);
  EXPECT_EQ(alone.kv_position_bytes, 36 * 2 * 2 * 8 * 64);
  const Mesh mesh{.tp = 8, .ep = 8};
  std::int64_t experts = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const RankCosts costs = costs_of(config, mesh, rank);
    experts += costs.expert_bytes;
    EXPECT_EQ(costs.kv_position_bytes * 8, alone.kv_position_bytes);
    EXPECT_EQ(costs.meetings, 36 * 2 + 1);
    EXPECT_EQ(costs.sent_bytes,
              (36 * 2 * 7 * 2880 + 7 * shard_of(config, mesh, rank).vocab.size()) * 4);
  }
  EXPECT_EQ(experts, alone.expert_bytes);
}

}  // namespace
}  // namespace gauntlet::engine
