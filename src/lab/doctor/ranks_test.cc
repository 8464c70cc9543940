#include "lab/doctor/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/os/fake_tree.h"

namespace gauntlet::lab::doctor {
namespace {

using testing::HasSubstr;
using Level = Finding::Level;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

RankMachine fit() {
  return {.cpus = 16,
          .online_cpus = 16,
          .mpirun = std::string("/usr/bin/mpirun"),
          .mpirun_version = "mpirun (Open MPI) 4.1.4",
          .library = std::string("/usr/lib/libmpi.so.40"),
          .shared_memory = DiskSpace{.total_bytes = 8 * kGiB, .free_bytes = 8 * kGiB},
          .session_folder = "/tmp",
          .session_is_writable = true,
          .host = "node1",
          .host_resolves = true,
          .sees_processes = true};
}

Finding finding(const RankMachine& machine, const std::string& name) {
  const auto all = check_ranks(machine);
  const auto found = std::ranges::find(all, name, &Finding::name);
  EXPECT_NE(found, all.end()) << name;
  return found == all.end() ? Finding() : *found;
}

TEST(RankChecks, are_all_well_on_a_machine_that_has_everything) {
  FakeTree tree;
  RankMachine machine = fit();
  machine.files = SystemFiles(tree.root());
  for (const Finding& one : check_ranks(machine)) {
    EXPECT_EQ(one.level, Level::ok) << one.name << ": " << one.reason;
    EXPECT_EQ(one.area, "ranks");
    EXPECT_EQ(one.fix, "");
  }
}

TEST(RankChecks, say_what_is_missing_and_what_to_do) {
  RankMachine machine = fit();
  machine.mpirun = Error{"mpirun is not in PATH"};
  machine.library = Error{"libmpi.so.40 was not found"};
  machine.shared_memory = DiskSpace{.total_bytes = 1 << 20, .free_bytes = 1 << 20};
  machine.session_is_writable = false;
  for (const char* name : {"mpirun", "libmpi", "shared memory", "session folder"}) {
    EXPECT_EQ(finding(machine, name).level, Level::fail) << name;
    EXPECT_NE(finding(machine, name).fix, "") << name;
  }
  EXPECT_THAT(finding(machine, "mpirun").fix, HasSubstr("apt-get install openmpi-bin"));
}

TEST(RankChecks, warn_of_what_costs_time_or_surprises) {
  RankMachine machine = fit();
  machine.mpirun_version = "HYDRA build details: 4.2";
  machine.cpus = 1;
  machine.is_root = true;
  machine.host_resolves = false;
  machine.sees_processes = false;
  FakeTree tree;
  tree.write("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  machine.files = SystemFiles(tree.root());
  for (const char* name :
       {"mpirun", "CPUs", "binding", "user", "host name", "lost ranks", "single copy"}) {
    EXPECT_EQ(finding(machine, name).level, Level::warn) << name;
    EXPECT_NE(finding(machine, name).fix, "") << name;
  }
  EXPECT_THAT(finding(machine, "user").fix, HasSubstr("--allow-run-as-root"));
  EXPECT_THAT(finding(machine, "lost ranks").reason, HasSubstr("--rank-timeout"));
}

TEST(RankChecks, count_shared_memory_for_as_many_ranks_as_there_are_cpus) {
  RankMachine machine = fit();
  machine.shared_memory->free_bytes = 64 << 20;  // a container's own
  EXPECT_EQ(finding(machine, "shared memory").level, Level::warn);
  machine.cpus = 4;
  EXPECT_EQ(finding(machine, "shared memory").level, Level::ok);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
