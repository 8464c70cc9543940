#include "lab/targets/suites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/targets/catalog.h"

namespace gauntlet::lab::inline targets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto parsed = parse_suites(text);
  return parsed ? "" : parsed.error().message;
}

TEST(Suites, parse_into_name_patterns_and_purpose) {
  const auto suites =
      parse_suites("# a comment\n\nquick\tch01:a  ch07:*\tA first look.\nall\t*\tAll.");
  ASSERT_TRUE(suites) << suites.error().message;
  ASSERT_EQ(suites->size(), 2u);
  EXPECT_EQ((*suites)[0].name, "quick");
  EXPECT_THAT((*suites)[0].patterns, ElementsAre("ch01:a", "ch07:*"));
  EXPECT_EQ((*suites)[0].purpose, "A first look.");
  EXPECT_EQ((*suites)[1].name, "all");
}

TEST(Suites, say_which_line_is_wrong_and_why) {
  EXPECT_EQ(error_of("# x\nquick ch01:a A look."),
            "suites line 2: 1 fields, expected name, patterns and purpose separated by tabs");
  EXPECT_EQ(error_of("quick\tch01\tA look.\tmore"),
            "suites line 1: 4 fields, expected name, patterns and purpose separated by tabs");
  EXPECT_EQ(error_of("a b\tch01\tA look."), "suites line 1: 'a b' is no name of a suite");
  EXPECT_EQ(error_of("\tch01\tA look."), "suites line 1: '' is no name of a suite");
  EXPECT_EQ(error_of("quick\t \tA look."), "suites line 1: 'quick' has no patterns");
  EXPECT_EQ(error_of("quick\tch01\t"), "suites line 1: 'quick' has no purpose");
  EXPECT_EQ(error_of("a\tch01\tA.\na\tch02\tB."), "suites line 2: 'a' is there twice");
  EXPECT_EQ(error_of("# nothing\n"), "suites: the file lists none");
}

TEST(Suites, of_the_catalogue_are_sound) {
  const auto suites = load_suites();
  ASSERT_TRUE(suites) << suites.error().message;
  EXPECT_EQ(suite_names(*suites), "quick, act1, act2, act3, act4 or all");
}

TEST(SuiteNames, read_like_a_choice) {
  EXPECT_EQ(suite_names({}), "");
  EXPECT_EQ(suite_names({{.name = "a"}}), "a");
  EXPECT_EQ(suite_names({{.name = "a"}, {.name = "b"}}), "a or b");
}

Target named(const std::string& chapter, const std::string& name) {
  return {.source = {.chapter = chapter, .name = name}, .pair = {}};
}

TEST(CatalogSuites, choose_targets_in_the_order_of_the_catalogue) {
  const Catalog catalog({named("ch06", "parallel_add"), named("ch07", "coalesced_copy"),
                         named("ch07", "vectorized_copy"), named("ch11", "graphs")},
                        {});
  const auto ids = [&](const std::string& suite) {
    std::vector<std::string> found;
    const auto chosen = catalog.suite(suite);
    EXPECT_TRUE(chosen) << suite;
    if (chosen) {
      for (const Target* target : *chosen) found.push_back(target->id());
    }
    return found;
  };
  EXPECT_THAT(ids("quick"), ElementsAre("ch06:parallel_add", "ch07:coalesced_copy"));
  EXPECT_THAT(ids("act2"),
              ElementsAre("ch06:parallel_add", "ch07:coalesced_copy", "ch07:vectorized_copy"));
  EXPECT_THAT(ids("act3"), ElementsAre("ch11:graphs"));
  EXPECT_EQ(ids("all").size(), 4u);
}

TEST(CatalogSuites, say_what_there_is_where_a_name_is_wrong) {
  const Catalog catalog({named("ch06", "parallel_add")}, {});
  const auto wrong = catalog.suite("qiuck");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::wrong_use);
  EXPECT_EQ(wrong.error().message,
            "there is no suite 'qiuck', did you mean 'quick'?; the suites are quick, act1, act2, "
            "act3, act4 or all");
  EXPECT_THAT(catalog.suite("act4").error().message, HasSubstr("has no targets"));
}

}  // namespace
}  // namespace gauntlet::lab::inline targets
