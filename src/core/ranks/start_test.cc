#include "core/ranks/start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/os/fake_tree.h"

namespace gauntlet::ranks {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

Start started_with(const std::map<std::string, std::string>& variables) {
  return started_as([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(StartedAs, is_no_rank_without_a_starter) {
  EXPECT_EQ(started_with({}).by, Start::By::none);
  EXPECT_EQ(started_with({}).size, 1);
}

TEST(StartedAs, reads_what_mpirun_says) {
  const Start start = started_with({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  EXPECT_EQ(start.by, Start::By::mpirun);
  EXPECT_EQ(start.rank, 3);
  EXPECT_EQ(start.size, 4);
}

TEST(StartedAs, reads_what_pmix_says) {
  const Start start = started_with({{"PMIX_RANK", "2"}});
  EXPECT_EQ(start.by, Start::By::pmix);
  EXPECT_EQ(start.rank, 2);
  EXPECT_EQ(start.size, 0) << "PMIx does not say it in the environment";
  EXPECT_EQ(started_with({{"PMIX_RANK", "2"}, {"SLURM_STEP_NUM_TASKS", "8"}}).size, 8);
}

TEST(StartedAs, tells_a_step_of_slurm_from_the_shell_of_an_allocation) {
  EXPECT_EQ(started_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).by, Start::By::none);
  const Start step = started_with({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_EQ(step.by, Start::By::slurm);
  EXPECT_EQ(step.rank, 5);
  EXPECT_EQ(step.size, 8);
}

TEST(FindMpirun, takes_the_first_in_the_path) {
  FakeTree tree;
  tree.write("/a/other", "").write("/b/mpirun", "").write("/c/mpirun", "");
  for (const char* folder : {"b", "c"}) {
    std::filesystem::permissions(tree.root() / folder / "mpirun",
                                 std::filesystem::perms::owner_all);
  }
  const std::string root = tree.root().string();
  const auto found = find_mpirun(root + "/a::" + root + "/b:" + root + "/c");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, root + "/b/mpirun");
}

TEST(FindMpirun, names_the_package_where_there_is_none) {
  const auto found = find_mpirun("/nowhere");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("openmpi-bin"));
}

TEST(MpirunCommand, ends_with_the_ranks_own) {
  const auto command = mpirun_command({.mpirun = "/usr/bin/mpirun", .ranks = 2, .cpus = 8},
                                      {"/bin/program", "--flag"});
  EXPECT_EQ(command.front(), "/usr/bin/mpirun");
  EXPECT_THAT(command, IsSupersetOf({std::string("-n"), std::string("2")}));
  EXPECT_EQ(command[command.size() - 2], "/bin/program");
  EXPECT_EQ(command.back(), "--flag");
  EXPECT_THAT(command, Not(Contains("--allow-run-as-root")));
  EXPECT_THAT(command, Not(Contains("--bind-to")));
}

TEST(MpirunCommand, lets_root_run_it) {
  EXPECT_THAT(mpirun_command({.mpirun = "m", .user = MpiLaunch::User::root}, {"p"}),
              Contains("--allow-run-as-root"));
}

TEST(MpirunCommand, shares_the_cpus_where_there_are_fewer_than_ranks) {
  EXPECT_THAT(mpirun_command({.mpirun = "m", .ranks = 3, .cpus = 2}, {"p"}),
              IsSupersetOf(
                  {std::string("--oversubscribe"), std::string("--bind-to"), std::string("none")}));
}

TEST(MpirunCommand, refuses_no_ranks_and_no_program) {
  EXPECT_THROW((void)mpirun_command({.mpirun = "m", .ranks = 0}, {"p"}), Fault);
  EXPECT_THROW((void)mpirun_command({.mpirun = "m", .ranks = 1}, {}), Fault);
}

}  // namespace
}  // namespace gauntlet::ranks
