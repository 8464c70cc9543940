#include "lab/targets/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline targets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHeader = "chapter\ttechnique\tstate\twhere\n";

/// A catalogue whose only target is ch07:twice.
Catalog one_target() { return Catalog({twice_target()}, {{"ch07", "doubling"}}); }

std::vector<std::string> problems_of(const std::string& line) {
  const auto rows = parse_coverage(kHeader + line + "\n");
  EXPECT_TRUE(rows);
  return coverage_problems(*rows, one_target());
}

TEST(ParseCoverage, reads_a_row_a_line) {
  const auto rows = parse_coverage(
      std::string(kHeader) + "ch07\tCoalescing\ttarget\tch07:a, ch07:b\n\nch08\tX\tfact\twhy\n");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].chapter, "ch07");
  EXPECT_EQ((*rows)[0].technique, "Coalescing");
  EXPECT_EQ((*rows)[0].state, "target");
  EXPECT_EQ((*rows)[0].where, "ch07:a, ch07:b");
  EXPECT_EQ((*rows)[1].technique, "X");
}

TEST(ParseCoverage, names_the_line_that_does_not_fit) {
  for (const char* line : {"ch07\tX\ttarget", "ch07\tX\tsomeday\tch07:a", "ch07\tX\ttarget\ta\tb",
                           "ch07\tX\ttarget\t"}) {
    const auto rows = parse_coverage(std::string(kHeader) + "ch07\tA\tfact\tb\n" + line + "\n");
    ASSERT_FALSE(rows) << line;
    EXPECT_THAT(rows.error().message, HasSubstr("coverage.tsv line 3"));
  }
}

TEST(ParseCoverage, takes_an_empty_list) {
  const auto rows = parse_coverage(kHeader);
  ASSERT_TRUE(rows);
  EXPECT_THAT(*rows, IsEmpty());
}

TEST(LoadCoverage, reads_the_list_this_binary_was_built_with) {
  const auto rows = load_coverage();
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_GT(rows->size(), 50u);
}

TEST(CoverageProblems, finds_none_where_the_list_is_true) {
  EXPECT_THAT(problems_of("ch07\tDoubling\ttarget\tch07:twice"), IsEmpty());
  EXPECT_THAT(problems_of("ch07\tTripling\tplanned\tch07:thrice"), IsEmpty());
  EXPECT_THAT(problems_of("ch07\tDoctor\tfeature\tgauntlet doctor"), IsEmpty());
}

TEST(CoverageProblems, reports_a_target_that_is_not_there) {
  EXPECT_THAT(problems_of("ch07\tDoubling\ttarget\tch07:twice, ch07:thrice"),
              ElementsAre("'Doubling' names ch07:thrice, which is not in the catalogue"));
}

TEST(CoverageProblems, reports_a_plan_that_came_true) {
  for (const char* line :
       {"ch07\tDoubling\tplanned\tch07:thrice,ch07:twice",
        "ch07\tDoubling\tfeature\tgauntlet run: a pair is planned as ch07:thrice,ch07:twice",
        "ch07\tDoubling\tfact\twhy; planned as ch07:thrice and ch07:twice"}) {
    EXPECT_THAT(problems_of(line),
                ElementsAre("'Doubling' calls ch07:twice planned, but it exists"))
        << line;
  }
}

TEST(CoverageProblems, reports_a_feature_that_names_no_command) {
  EXPECT_THAT(problems_of("ch07\tDoubling\tfeature\tthe engine doubles"),
              ElementsAre("'Doubling' is a feature, but names no command"));
}

TEST(CoverageProblems, reports_a_target_that_cannot_run_on_blackwell) {
  Target hopper = twice_target();
  for (SideSource& side : hopper.source.cuda) side.cuda_arch = "sm_90a";
  const Catalog catalog({hopper}, {{"ch07", "doubling"}});
  const auto rows = parse_coverage(std::string(kHeader) + "blackwell\tX\ttarget\tch07:twice\n" +
                                   "ch07\tX\ttarget\tch07:twice\n");
  ASSERT_TRUE(rows);
  EXPECT_THAT(coverage_problems(*rows, catalog),
              ElementsAre("'X' names ch07:twice, which is written for sm_90a and skipped on "
                          "Blackwell"));
}

TEST(NamedFeature, reads_command_and_option_off_the_beginning) {
  const auto of = [](const std::string& where) {
    return named_feature({.chapter = "", .technique = "", .state = "feature", .where = where});
  };
  EXPECT_EQ(of("gauntlet serve --prefix-cache: pages")->command, "serve");
  EXPECT_EQ(of("gauntlet serve --prefix-cache: pages")->option, "--prefix-cache");
  EXPECT_EQ(of("gauntlet doctor: links")->command, "doctor");
  EXPECT_EQ(of("gauntlet doctor: links")->option, "");
  EXPECT_FALSE(of("see gauntlet doctor"));
}

}  // namespace
}  // namespace gauntlet::lab::inline targets
