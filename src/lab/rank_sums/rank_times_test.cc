#include "lab/rank_sums/rank_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline rank_sums {
namespace {

using testing::HasSubstr;
using testing::Not;
using Of = RankSetting::Of;

constexpr std::size_t kToken = 1;  // the size that decides

/// Three jobs, each with these times for both sums, at two sizes.
SettingTimes times(const std::string& name, Of of, std::vector<double> small,
                   std::vector<double> token) {
  SettingTimes made{.setting = {.name = name, .of = of, .variables = {{"OMPI_MCA_" + name, "1"}}},
                    .rounds = {}};
  for (std::size_t i = 0; i < small.size(); ++i) {
    made.rounds.push_back({{.bytes = 1024, .group_us = small[i], .mpi_us = small[i]},
                           {.bytes = 11520, .group_us = token[i], .mpi_us = token[i]}});
  }
  return made;
}

const SettingTimes kPlain = times("plain", Of::nothing, {10, 11, 12}, {100, 110, 120});

TEST(RankTimes, keep_a_setting_whose_every_job_is_faster) {
  const std::vector<SettingTimes> all = {kPlain,
                                         times("a", Of::transport, {10, 11, 12}, {70, 80, 99}),
                                         times("b", Of::transport, {11, 11, 11}, {60, 61, 62})};
  ASSERT_NE(clearly_faster(all, Of::transport, kToken), nullptr);
  EXPECT_EQ(clearly_faster(all, Of::transport, kToken)->setting.name, "b");
  EXPECT_EQ(clearly_faster(all, Of::all_reduce, kToken), nullptr);
  const std::string text = presets_text(all, "a test");
  EXPECT_THAT(text, HasSubstr("\nOMPI_MCA_b=1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nOMPI_MCA_a=1\n")));
  EXPECT_THAT(text, HasSubstr("# b: 1024 B 11.0 (11.0 to 11.0), 11520 B 61.0 (60.0 to 62.0)\n"));
}

TEST(RankTimes, keep_nothing_that_one_job_speaks_against) {
  const std::vector<SettingTimes> all = {kPlain,
                                         times("a", Of::transport, {10, 11, 12}, {50, 60, 101})};
  EXPECT_EQ(clearly_faster(all, Of::transport, kToken), nullptr);
  EXPECT_THAT(presets_text(all, "a test"), HasSubstr("# Nothing is set.\n"));
}

TEST(RankTimes, keep_nothing_that_is_clearly_worse_at_another_size) {
  const std::vector<SettingTimes> all = {kPlain,
                                         times("a", Of::all_reduce, {13, 14, 15}, {50, 60, 70})};
  EXPECT_EQ(clearly_faster(all, Of::all_reduce, kToken), nullptr);
}

TEST(RankTimes, name_each_setting_once_and_change_nothing_in_the_first) {
  const auto settings = rank_settings();
  EXPECT_TRUE(settings.front().variables.empty());
  for (std::size_t i = 1; i < settings.size(); ++i) {
    EXPECT_NE(settings[i].of, Of::nothing);
    EXPECT_FALSE(settings[i].variables.empty()) << settings[i].name;
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline rank_sums
