#include "core/os/cgroup.h"

#include <gtest/gtest.h>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

TEST(Cgroup, has_no_limits_without_files) {
  FakeTree tree;
  const CgroupLimits limits = read_cgroup_limits(SystemFiles(tree.root()));
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.cpu_cores, std::nullopt);
}

TEST(Cgroup, reads_version_2_and_takes_the_tightest_of_the_groups_above) {
  FakeTree tree;
  tree.write("/proc/self/cgroup", "0::/a/b\n")
      .write("/sys/fs/cgroup/a/b/memory.max", "max\n")
      .write("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n")
      .write("/sys/fs/cgroup/a/memory.max", "1000\n")
      .write("/sys/fs/cgroup/a/memory.current", "700\n")
      .write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 200\n")
      .write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n")
      .write("/sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 5\n");
  const CgroupLimits limits = read_cgroup_limits(SystemFiles(tree.root()));
  EXPECT_EQ(limits.memory_bytes, 1000);
  EXPECT_EQ(limits.memory_used_bytes, 500);
  EXPECT_EQ(limits.cpu_cores, 1.5);
  EXPECT_EQ(limits.throttled_periods, 5);
}

TEST(Cgroup, reads_version_1) {
  FakeTree tree;
  tree.write("/proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n")
      .write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n")
      .write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n")
      .write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = read_cgroup_limits(SystemFiles(tree.root()));
  EXPECT_EQ(limits.memory_bytes, 5000);
  EXPECT_EQ(limits.cpu_cores, 0.5);
}

TEST(Cgroup, takes_version_1_without_a_limit_as_unlimited) {
  FakeTree tree;
  tree.write("/proc/self/cgroup", "4:memory:/\n1:cpu:/\n")
      .write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = read_cgroup_limits(SystemFiles(tree.root()));
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.cpu_cores, std::nullopt);
}

TEST(Cgroup, finds_a_containers_own_group_when_the_path_is_the_hosts) {
  FakeTree tree;
  tree.write("/proc/self/cgroup", "0::/kubepods/pod1/c1\n")
      .write("/sys/fs/cgroup/memory.max", "777\n");
  EXPECT_EQ(read_cgroup_limits(SystemFiles(tree.root())).memory_bytes, 777);
}

}  // namespace
}  // namespace gauntlet
