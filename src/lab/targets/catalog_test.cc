#include "lab/targets/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline targets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A sound pair with CPU and CUDA sides.
Target named(const std::string& chapter, const std::string& name) {
  const std::vector<SideSource> sides = {{.name = "baseline", .role = SideRole::baseline},
                                         {.name = "optimized", .role = SideRole::optimized}};
  Target target{.source = {.chapter = chapter, .name = name, .cpu = sides, .cuda = sides}};
  target.pair.title = "slow → fast";
  target.pair.technique = "doubling";
  target.pair.bind = [](Binder&) { return std::shared_ptr<const void>(); };
  target.pair.reference = [](const std::shared_ptr<const void>&, Reference&) {};
  target.pair.cpu = target.pair.cuda =
      BackendFacts{.claim = "Doubles.",
                   .cost = [](const Knobs&) { return Cost{.read_bytes = 1}; },
                   .witness = Witness::none("a test")};
  return target;
}

Catalog sample() {
  return Catalog({named("ch06", "parallel_add"), named("ch07", "coalesced_copy"),
                  named("ch07", "vectorized_copy"), named("ch07", "tiled_matmul")},
                 {{"ch06", "doubling"}, {"ch07", "doubling"}});
}

std::vector<std::string> ids(const Expected<std::vector<const Target*>>& selected) {
  std::vector<std::string> result;
  for (const Target* target : *selected) result.push_back(target->id());
  return result;
}

std::string error_of(const Expected<std::vector<const Target*>>& selected) {
  EXPECT_FALSE(selected);
  EXPECT_EQ(selected.error().kind, ErrorKind::wrong_use);
  return selected.error().message;
}

TEST(Catalog, finds_a_target_by_its_id) {
  const Catalog catalog = sample();
  ASSERT_NE(catalog.find("ch07:tiled_matmul"), nullptr);
  EXPECT_EQ(catalog.find("ch07:tiled_matmul")->source.name, "tiled_matmul");
  EXPECT_EQ(catalog.find("tiled_matmul"), nullptr);
  EXPECT_EQ(catalog.find("ch06:tiled_matmul"), nullptr);
}

TEST(Catalog, selects_by_id_chapter_and_glob) {
  const Catalog catalog = sample();
  EXPECT_THAT(ids(catalog.select({"ch06:parallel_add"})), ElementsAre("ch06:parallel_add"));
  EXPECT_THAT(ids(catalog.select({"ch07"})),
              ElementsAre("ch07:coalesced_copy", "ch07:vectorized_copy", "ch07:tiled_matmul"));
  EXPECT_THAT(ids(catalog.select({"*copy"})),
              ElementsAre("ch07:coalesced_copy", "ch07:vectorized_copy"));
  EXPECT_THAT(ids(catalog.select({"ch0[67]:?a*"})), ElementsAre("ch06:parallel_add"));
  EXPECT_EQ(ids(catalog.select({"*"})).size(), 4u);
}

TEST(Catalog, selects_each_target_once_in_the_order_of_the_catalogue) {
  EXPECT_THAT(ids(sample().select({"ch07:tiled_matmul", "ch07:*", "ch06"})),
              ElementsAre("ch06:parallel_add", "ch07:coalesced_copy", "ch07:vectorized_copy",
                          "ch07:tiled_matmul"));
  EXPECT_THAT(ids(sample().select({})), IsEmpty());
}

TEST(Catalog, suggests_the_nearest_id_though_the_chapter_was_left_out) {
  EXPECT_THAT(
      error_of(sample().select({"ch07:coalesed_copy"})),
      HasSubstr("no target matches 'ch07:coalesed_copy', did you mean 'ch07:coalesced_copy'?"));
  EXPECT_THAT(error_of(sample().select({"tiled_matmull"})),
              HasSubstr("did you mean 'ch07:tiled_matmul'?"));
}

TEST(Catalog, refuses_all_when_one_pattern_matches_nothing) {
  EXPECT_THAT(error_of(sample().select({"ch07", "zzzzzzzzzzzz"})),
              HasSubstr("no target matches 'zzzzzzzzzzzz'; the chapters are ch06, ch07"));
}

/// Problems of a catalogue of one target that was spoilt.
std::vector<std::string> problems(const std::function<void(Target&)>& spoil) {
  Target target = named("ch07", "x");
  spoil(target);
  return Catalog({target}, {{"ch06", "tiling"}, {"ch07", "doubling"}}).problems();
}

TEST(CatalogProblems, finds_none_in_a_sound_catalogue) {
  EXPECT_THAT(problems([](Target&) {}), IsEmpty());
}

TEST(CatalogProblems, reports_a_technique_of_another_chapter) {
  EXPECT_THAT(problems([](Target& t) { t.pair.technique = "tiling"; }),
              ElementsAre("ch07:x: technique 'tiling' is not in the list of its chapter "
                          "(catalog/ch07/techniques)"));
}

TEST(CatalogProblems, reports_each_thing_that_is_missing) {
  EXPECT_THAT(problems([](Target& t) { t.pair.cuda.reset(); }),
              ElementsAre("ch07:x: has cuda sides but declares no claim for them"));
  EXPECT_THAT(problems([](Target& t) { t.pair.cpu->claim.clear(); }),
              ElementsAre("ch07:x: the claim is empty"));
  EXPECT_THAT(problems([](Target& t) { t.pair.cpu->cost = nullptr; }),
              ElementsAre("ch07:x: there is no cost"));
  EXPECT_THAT(problems([](Target& t) { t.pair.cpu->witness = Witness::none(""); }),
              ElementsAre("ch07:x: the witness has no meaning"));
  EXPECT_THAT(problems([](Target& t) { t.pair.title.clear(); }),
              ElementsAre("ch07:x: the title is empty"));
  EXPECT_THAT(problems([](Target& t) { t.pair.reference = nullptr; }),
              ElementsAre("ch07:x: bind and reference are required"));
  EXPECT_THAT(problems([](Target& t) { t.pair.bar = 1.0; }),
              ElementsAre("ch07:x: the bar is below 1.02"));
}

TEST(CatalogProblems, asks_a_goal_other_than_speed_for_its_metric) {
  const auto with_metric = [](const std::string& goal_metric) {
    return problems([&](Target& t) {
      t.pair.goal = Goal::memory;
      t.pair.metrics = {{.name = "bytes_held", .unit = "B"}};
      t.pair.goal_metric = goal_metric;
    });
  };
  EXPECT_THAT(with_metric("bytes_held"), IsEmpty());
  EXPECT_EQ(with_metric("bytes").size(), 1u);
}

TEST(CatalogProblems, reports_a_need_that_cannot_be_checked) {
  EXPECT_THAT(problems([](Target& t) { t.pair.needs = {"2 NUMA nodes", "io_uring"}; }), IsEmpty());
  EXPECT_THAT(problems([](Target& t) { t.pair.cuda->needs = {"sm_90a", "2 GPUs", "cublas"}; }),
              IsEmpty());
  EXPECT_THAT(problems([](Target& t) { t.pair.needs = {"sm90"}; }),
              ElementsAre("ch07:x: needs 'sm90', which the lab cannot check"));
  EXPECT_THAT(problems([](Target& t) { t.pair.cuda->needs = {"sm90"}; }),
              ElementsAre("ch07:x: needs 'sm90', which the lab cannot check"));
}

TEST(CatalogProblems, holds_yardsticks_to_the_same) {
  const auto with_library = [](const std::string& name, const std::string& need) {
    return problems([&](Target& t) {
      t.source.cpu.push_back(t.source.cpu[0]);
      t.source.cpu.back().name = "library";
      t.source.cpu.back().role = SideRole::yardstick;
      t.pair.cpu->yardsticks = {{.name = name, .needs = {need}}};
    });
  };
  EXPECT_THAT(with_library("library", "lz4"), IsEmpty());
  EXPECT_THAT(with_library("other", "lz4"), ElementsAre("ch07:x: there is no yardstick 'other'"));
  EXPECT_THAT(with_library("library", "blas"),
              ElementsAre("ch07:x: needs 'blas', which the lab cannot check"));
  EXPECT_THAT(with_library("library", "cudnn"),
              ElementsAre("ch07:x: its CPU sides need 'cudnn', which only a GPU has: say it among "
                          "the needs of the other backends"));
}

TEST(CatalogProblems, does_not_let_cpu_sides_need_a_gpu) {
  EXPECT_THAT(problems([](Target& t) { t.pair.needs = {"sm_80"}; }),
              ElementsAre("ch07:x: its CPU sides need 'sm_80', which only a GPU has: say it among "
                          "the needs of the other backends"));
  EXPECT_THAT(problems([](Target& t) {
                t.pair.needs = {"sm_80"};
                t.source.cpu.clear();
              }),
              IsEmpty());
}

TEST(CatalogProblems, does_not_ask_for_claims_of_a_backend_the_pair_lacks) {
  EXPECT_THAT(problems([](Target& t) {
                t.source.cpu.clear();
                t.pair.cpu.reset();
              }),
              IsEmpty());
}

TEST(CatalogProblems, asks_ranks_for_what_other_backends_say) {
  EXPECT_THAT(problems([](Target& t) { t.source.ranks = t.source.cpu; }),
              ElementsAre("ch07:x: has ranks sides but declares no claim for them"));
}

TEST(CatalogProblems, asks_each_rung_from_the_second_on_for_claim_and_witness) {
  const auto with_rungs = [](const std::vector<Rung>& rungs) {
    return problems([&](Target& t) {
      t.source.cpu.clear();
      t.source.cuda = {{.name = "naive", .role = SideRole::rung},
                       {.name = "tiled", .role = SideRole::rung},
                       {.name = "tma", .role = SideRole::rung},
                       {.name = "yardstick", .role = SideRole::yardstick}};
      t.pair.cuda->witness = {};
      t.pair.cuda->rungs = rungs;
    });
  };
  const Rung tiled{.name = "tiled", .claim = "Reuses.", .witness = Witness::none("a test")};
  const Rung tma{.name = "tma", .claim = "Copies.", .witness = Witness::none("a test")};
  EXPECT_THAT(with_rungs({tiled, tma}), IsEmpty());
  EXPECT_THAT(with_rungs({tiled}), ElementsAre("ch07:x: rung 'tma' has no claim"));
  EXPECT_THAT(with_rungs({tiled, {.name = "tma", .claim = "Copies."}}),
              ElementsAre("ch07:x: the witness of rung 'tma' has no meaning"));
  EXPECT_THAT(with_rungs({tiled, tma, {.name = "naive", .claim = "x"}}),
              ElementsAre("ch07:x: there is no rung 'naive' after the first"));
}

}  // namespace
}  // namespace gauntlet::lab::inline targets
