#include "lab/doctor/doctor.h"

#include <gtest/gtest.h>

#include <set>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

TEST(Doctor, knows_nothing_and_says_so_on_an_empty_machine) {
  for (const Finding& finding : run_doctor(FakeMachine().context)) {
    EXPECT_TRUE(finding.level == Level::unknown || finding.level == Level::ok)
        << finding.area << "/" << finding.name;
    EXPECT_FALSE(finding.reason.empty()) << finding.area << "/" << finding.name;
  }
}

TEST(Doctor, names_each_line_once) {
  std::set<std::string> seen;
  for (const Finding& finding : run_doctor(FakeMachine().context)) {
    EXPECT_TRUE(seen.insert(finding.area + "/" + finding.name).second) << finding.name;
  }
}

TEST(Doctor, gives_a_fix_with_every_complaint_and_none_without) {
  for (const Finding& finding : run_doctor(this_machine("."))) {
    const bool complains = finding.level == Level::warn || finding.level == Level::fail;
    if (finding.level == Level::unknown) continue;
    EXPECT_EQ(complains, !finding.fix.empty()) << finding.area << "/" << finding.name;
  }
}

TEST(Doctor, finds_the_disk_of_a_folder_that_is_not_made_yet) {
  const DoctorContext context = this_machine("/tmp/not/made/yet");
  ASSERT_TRUE(context.disk);
  EXPECT_GT(context.disk->total_bytes, 0);
  EXPECT_EQ(context.folder, "/tmp/not/made/yet");
  EXPECT_TRUE(this_machine("").disk);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
