#include "lab/targets/scaffold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline targets {
namespace {

using testing::HasSubstr;
using testing::Not;
using Sides = ScaffoldRequest::Sides;

std::vector<std::string> names(const std::map<std::string, std::string>& files) {
  std::vector<std::string> result;
  for (const auto& [name, text] : files) result.push_back(name);
  return result;
}

std::map<std::string, std::string> files_for(Sides sides) {
  return scaffold_files(
      {.chapter = "ch07", .name = "my_pair", .technique = "coalescing", .sides = sides});
}

TEST(ParsePairName, splits_chapter_and_name) {
  for (const char* text : {"ch07/my_pair2", "ch07:my_pair2"}) {
    const auto request = parse_pair_name(text);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->chapter, "ch07");
    EXPECT_EQ(request->name, "my_pair2");
    EXPECT_EQ(request->technique, "");
  }
  EXPECT_TRUE(parse_pair_name("labs/moe"));
}

TEST(ParsePairName, refuses_what_is_no_folder_and_no_namespace) {
  for (const char* text : {"", "ch07", "ch07/", "ch7/x", "chapter/x", "ch07/My_Pair", "ch07/2x",
                           "ch07/a-b", "ch07/a/b", "ch07/../x", " ch07/x"}) {
    const auto request = parse_pair_name(text);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().kind, ErrorKind::wrong_use);
    EXPECT_THAT(request.error().message, HasSubstr("ch07/my_pair"));
  }
}

TEST(Scaffold, makes_the_files_of_the_sides_asked_for) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(files_for(Sides::both)), (Names{"baseline.cc", "baseline.cu", "optimized.cc",
                                                  "optimized.cu", "pair.cc", "pair.h"}));
  EXPECT_EQ(names(files_for(Sides::cpu)),
            (Names{"baseline.cc", "optimized.cc", "pair.cc", "pair.h"}));
  EXPECT_EQ(names(files_for(Sides::cuda)),
            (Names{"baseline.cu", "optimized.cu", "pair.cc", "pair.h"}));
}

TEST(Scaffold, declares_facts_for_the_backends_it_has_sides_for) {
  EXPECT_THAT(files_for(Sides::both).at("pair.cc"), HasSubstr(".cpu = "));
  EXPECT_THAT(files_for(Sides::both).at("pair.cc"), HasSubstr(".cuda = lab"));
  EXPECT_THAT(files_for(Sides::cpu).at("pair.cc"), Not(HasSubstr(".cuda = lab")));
  EXPECT_THAT(files_for(Sides::cuda).at("pair.cc"), Not(HasSubstr(".cpu = lab")));
}

TEST(Scaffold, fills_in_every_name_and_leaves_no_mark) {
  for (Sides sides : {Sides::both, Sides::cpu, Sides::cuda}) {
    for (const auto& [name, text] : files_for(sides)) {
      EXPECT_THAT(text, Not(HasSubstr("@"))) << name;
      EXPECT_THAT(text, HasSubstr("gauntlet::ch07::my_pair")) << name;
      EXPECT_EQ(text.back(), '\n') << name;
    }
  }
  const auto files = files_for(Sides::both);
  EXPECT_THAT(files.at("pair.cc"), HasSubstr(".technique = \"coalescing\""));
  EXPECT_THAT(files.at("pair.cc"), HasSubstr("#include \"catalog/ch07/my_pair/pair.h\""));
  EXPECT_THAT(files.at("baseline.cc"), HasSubstr("lab::Side baseline(const Params& p"));
  EXPECT_THAT(files.at("optimized.cu"), HasSubstr("lab::Side optimized(const Params& p"));
}

}  // namespace
}  // namespace gauntlet::lab::inline targets
