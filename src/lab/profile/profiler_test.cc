#include "lab/profile/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gauntlet::lab::inline profile {
namespace {

bool contains_all(const std::vector<std::string>& larger, const std::vector<std::string>& smaller) {
  return std::all_of(smaller.begin(), smaller.end(), [&](const std::string& name) {
    return std::find(larger.begin(), larger.end(), name) != larger.end();
  });
}

TEST(ProfileLevel, reads_back_every_name_it_prints) {
  for (const auto level : {ProfileLevel::none, ProfileLevel::minimal, ProfileLevel::roofline,
                           ProfileLevel::deep_dive}) {
    EXPECT_EQ(profile_level_from(name_of(level)), level) << name_of(level);
  }
}

TEST(ProfileLevel, refuses_any_other_name) {
  for (const char* name : {"", "Minimal", "deep-dive", "deep_dive ", "all"}) {
    EXPECT_FALSE(profile_level_from(name)) << '"' << name << '"';
  }
}

TEST(ProfileMetrics, are_none_at_level_none) {
  EXPECT_TRUE(profile_metrics(ProfileLevel::none, BackendKind::cpu).empty());
  EXPECT_TRUE(profile_metrics(ProfileLevel::none, BackendKind::cuda).empty());
}

TEST(ProfileMetrics, of_deep_dive_include_those_of_the_lower_levels) {
  for (const auto backend : {BackendKind::cpu, BackendKind::cuda}) {
    const auto deep = profile_metrics(ProfileLevel::deep_dive, backend);
    EXPECT_TRUE(contains_all(deep, profile_metrics(ProfileLevel::minimal, backend)));
    EXPECT_TRUE(contains_all(deep, profile_metrics(ProfileLevel::roofline, backend)));
    EXPECT_GT(deep.size(), profile_metrics(ProfileLevel::roofline, backend).size());
  }
}

TEST(ProfileMetrics, name_no_counter_twice) {
  for (const auto backend : {BackendKind::cpu, BackendKind::cuda}) {
    for (const auto level :
         {ProfileLevel::minimal, ProfileLevel::roofline, ProfileLevel::deep_dive}) {
      const auto names = profile_metrics(level, backend);
      EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    }
  }
}

TEST(ProfileMetrics, count_dram_bytes_wherever_a_roofline_is_drawn) {
  for (const auto level : {ProfileLevel::minimal, ProfileLevel::roofline}) {
    EXPECT_TRUE(contains_all(profile_metrics(level, BackendKind::cuda),
                             {"dram__bytes_read.sum", "dram__bytes_write.sum"}));
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline profile
