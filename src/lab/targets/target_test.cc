#include "lab/targets/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"
#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline targets {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr BackendKind kCuda = BackendKind::cuda;

Target ladder() {
  const TwiceFactory right = [](const TwiceParams& p) { return Side([p] { twice(p); }); };
  return twice_ladder({right, right, right, right});
}

/// "naive>tiled step"
std::vector<std::string> compared(const Target& target) {
  std::vector<std::string> result;
  for (const SidePair& pair : target.comparisons(kCuda)) {
    const auto& sides = target.sides(kCuda);
    result.push_back(sides[pair.from].name + ">" + sides[pair.to].name + " " + name_of(pair.kind));
  }
  return result;
}

TEST(Target, compares_the_two_sides_of_a_pair) {
  const Target target = twice_target();
  EXPECT_THAT(compared(target), ElementsAre("baseline>optimized pair"));
  EXPECT_EQ(target.headline(kCuda).kind, SidePair::Kind::pair);
  EXPECT_EQ(target.id(), "ch07:twice");
}

TEST(Target, compares_the_optimized_side_of_a_pair_with_its_yardstick) {
  Target target = twice_target();
  target.source.cuda.push_back(target.source.cuda[0]);
  target.source.cuda.back().name = "library";
  target.source.cuda.back().role = SideRole::yardstick;
  EXPECT_THAT(compared(target),
              ElementsAre("baseline>optimized pair", "library>optimized yardstick"));
  EXPECT_EQ(target.headline(kCuda).kind, SidePair::Kind::pair);
}

TEST(Target, compares_each_rung_with_the_one_before_and_with_the_first) {
  const Target target = ladder();
  EXPECT_THAT(compared(target), ElementsAre("naive>tiled step", "tiled>async step",
                                            "naive>async total", "library>async yardstick"));
  const SidePair headline = target.headline(kCuda);
  EXPECT_EQ(headline.from, 0u);
  EXPECT_EQ(headline.to, 2u);
}

TEST(Target, judges_a_lab_of_two_rungs_by_its_one_step) {
  Target target = ladder();
  auto& sides = target.source.cuda;
  sides.erase(sides.begin() + 2);
  EXPECT_THAT(compared(target), ElementsAre("naive>tiled step", "library>tiled yardstick"));
  EXPECT_EQ(target.headline(kCuda).kind, SidePair::Kind::step);
}

TEST(Target, has_nothing_to_compare_where_it_has_no_sides) {
  const Target target = ladder();
  EXPECT_FALSE(target.has(BackendKind::ranks));
  EXPECT_THAT(target.comparisons(BackendKind::ranks), IsEmpty());
  EXPECT_THROW(target.headline(BackendKind::ranks), Fault);
  EXPECT_THROW(target.facts(BackendKind::ranks), Fault);
  EXPECT_EQ(target.declared(BackendKind::ranks), nullptr);
}

TEST(Target, takes_the_witness_of_a_step_from_its_rung) {
  Target target = ladder();
  const auto witness = [](const char* name) {
    return Witness::counter(name, Witness::Moves::falls, 2, "fewer of them");
  };
  target.pair.cuda->rungs = {{.name = "tiled", .claim = "Tiles.", .witness = witness("sectors")},
                             {.name = "async", .claim = "Overlaps.", .witness = witness("stalls")}};
  const auto comparisons = target.comparisons(kCuda);
  EXPECT_EQ(target.witness(kCuda, comparisons[0]).name, "sectors");
  EXPECT_EQ(target.witness(kCuda, comparisons[1]).name, "stalls");
  for (const std::size_t i : {2, 3}) {
    EXPECT_EQ(target.witness(kCuda, comparisons[i]).source, Witness::Source::none);
  }
}

TEST(Target, needs_what_the_pair_the_backend_and_the_sources_need) {
  Target target = twice_target();
  target.pair.needs = {"2 GPUs"};
  target.pair.cuda->needs = {"cublas", "sm_90a"};
  target.source.cuda[1].cuda_arch = "sm_90a";
  EXPECT_THAT(target.needs(kCuda), ElementsAre("2 GPUs", "cublas", "sm_90a"));
  EXPECT_THAT(target.needs(BackendKind::cpu), ElementsAre("2 GPUs"));
}

TEST(Target, leaves_the_needs_of_a_yardstick_to_the_yardstick) {
  Target target = ladder();
  auto& library = target.source.cuda.back();
  library.cuda_arch = "sm_90a";
  target.pair.cuda->needs = {"sm_80"};
  target.pair.cuda->yardsticks = {{.name = "other", .needs = {"nccl"}},
                                  {.name = "library", .needs = {"cudnn"}}};
  EXPECT_THAT(target.needs(kCuda), ElementsAre("sm_80"));
  EXPECT_THAT(target.needs_of(kCuda, library), ElementsAre("cudnn", "sm_90a"));
  target.pair.cuda->yardsticks.clear();
  EXPECT_THAT(target.needs_of(kCuda, library), ElementsAre("sm_90a"));
}

TEST(Target, is_the_same_ladder_without_a_yardstick) {
  const Target whole = ladder();
  const Target rest = whole.without(kCuda, {"library"});
  EXPECT_THAT(compared(rest),
              ElementsAre("naive>tiled step", "tiled>async step", "naive>async total"));
  EXPECT_EQ(rest.headline(kCuda).to, whole.headline(kCuda).to);
  EXPECT_EQ(whole.sides(kCuda).size(), 4u);
  EXPECT_EQ(whole.without(BackendKind::cpu, {"library"}).sides(kCuda).size(), 4u);
  // Rungs are not left out, whatever their name.
  EXPECT_EQ(whole.without(kCuda, {"tiled", "none"}).sides(kCuda).size(), 4u);
}

TEST(MakeTarget, keeps_the_kind_of_each_backend) {
  Target target = twice_target();
  target.pair.cpu->kind = Kind::demonstration;
  EXPECT_EQ(target.facts(BackendKind::cpu).kind, Kind::demonstration);
  EXPECT_EQ(target.facts(kCuda).kind, Kind::comparison);
}

}  // namespace
}  // namespace gauntlet::lab::inline targets
