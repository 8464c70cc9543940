#include "core/machine/host_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "core/machine/gpu_driver.h"
#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

using testing::HasSubstr;

std::string missing(const Expected<void>& probed) { return probed ? "" : probed.error().message; }

TEST(IoUringRefusal, says_who_refused_and_what_to_do) {
  FakeTree none, disabled;
  disabled.write("/proc/sys/kernel/io_uring_disabled", "2\n");
  EXPECT_THAT(io_uring_refusal(ENOSYS, SystemFiles(none.root())), HasSubstr("Linux 5.1"));
  EXPECT_THAT(io_uring_refusal(EPERM, SystemFiles(none.root())), HasSubstr("seccomp"));
  EXPECT_EQ(io_uring_refusal(EPERM, SystemFiles(disabled.root())),
            "kernel.io_uring_disabled is 2: sysctl -w kernel.io_uring_disabled=0");
  EXPECT_THAT(io_uring_refusal(ENOMEM, SystemFiles(none.root())), HasSubstr("ulimit -l"));
}

TEST(ProbeIoUring, holds_nothing_or_a_reason) {
  // Either is right on some machine; what must not happen is an empty reason.
  const auto probed = probe_io_uring(SystemFiles());
  if (!probed) {
    EXPECT_GT(probed.error().message.size(), 20u);
  }
}

TEST(ProbeDirectIo, names_the_folder_it_could_not_use) {
  EXPECT_THAT(missing(probe_direct_io("/no/such/folder")),
              testing::AllOf(HasSubstr("/no/such/folder"), HasSubstr("TMPDIR")));
  EXPECT_THAT(missing(probe_direct_io("/proc")), HasSubstr("/proc"));
}

TEST(ProbeDirectIo, does_not_take_memory_for_a_disk) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  EXPECT_THAT(missing(probe_direct_io("/dev/shm")), HasSubstr("in memory"));
}

TEST(ProbeDirectIo, leaves_no_file_behind) {
  FakeTree folder;
  (void)probe_direct_io(folder.root());
  EXPECT_TRUE(std::filesystem::is_empty(folder.root()));
}

TEST(ChosenWord, is_the_bracketed_one) {
  EXPECT_EQ(chosen_word("always [madvise] never"), "madvise");
  EXPECT_EQ(chosen_word("always madvise never"), "");
  EXPECT_EQ(chosen_word("] ["), "");
}

TEST(ProbeHugePages, takes_either_kind) {
  const auto probe = [](const std::string& transparent, const std::string& reserved) {
    FakeTree tree;
    if (!transparent.empty()) {
      tree.write("/sys/kernel/mm/transparent_hugepage/enabled", transparent);
    }
    tree.write("/proc/meminfo", "HugePages_Total: 8\nHugePages_Free: " + reserved + "\n");
    return missing(probe_huge_pages(SystemFiles(tree.root())));
  };
  EXPECT_EQ(probe("always [madvise] never", "0"), "");
  EXPECT_EQ(probe("[always] madvise never", "0"), "");
  EXPECT_EQ(probe("always madvise [never]", "8"), "");
  EXPECT_THAT(probe("always madvise [never]", "0"),
              testing::AllOf(HasSubstr("set to never"), HasSubstr("echo madvise")));
  EXPECT_THAT(probe("", "0"), HasSubstr("not in this kernel"));
}

TEST(ProbeRdma, asks_for_a_device) {
  FakeTree with, without;
  with.write("/sys/class/infiniband/mlx5_0/node_type", "1: CA");
  EXPECT_EQ(missing(probe_rdma(SystemFiles(with.root()))), "");
  EXPECT_THAT(missing(probe_rdma(SystemFiles(without.root()))),
              HasSubstr("/sys/class/infiniband shows no device"));
}

TEST(ProbeGrace, asks_for_the_cpu_and_for_the_link) {
  const CpuInfo grace{.model = "ARM Neoverse V2"}, epyc{.model = "AMD EPYC"};
  EXPECT_EQ(missing(probe_grace(grace, 1)), "");
  EXPECT_THAT(missing(probe_grace(epyc, 1)), HasSubstr("AMD EPYC, not Grace"));
  EXPECT_THAT(missing(probe_grace(grace, 0)), HasSubstr("NVLink-C2C"));
  EXPECT_EQ(missing(probe_grace(grace, Error{"the driver shows no GPU"})),
            "the driver shows no GPU");
}

TEST(ProbeNvls, asks_the_driver) {
  EXPECT_EQ(missing(probe_nvls(1)), "");
  EXPECT_THAT(missing(probe_nvls(0)), HasSubstr("NVSwitch"));
  EXPECT_EQ(missing(probe_nvls(Error{"no NVIDIA driver"})), "no NVIDIA driver");
}

TEST(ProbeLibrary, says_how_to_get_it) {
  EXPECT_EQ(missing(probe_library({.names = {"libm.so.6"}}, "install it")), "");
  EXPECT_THAT(
      missing(probe_library({.names = {"libabsent.so.7"}}, "apt-get install absent")),
      testing::AllOf(HasSubstr("libabsent.so.7 not found"), HasSubstr("apt-get install absent")));
}

TEST(GpuAttributes, agree_with_whether_there_is_a_gpu) {
  const auto multicast = gpu_attribute(GpuAttribute::multicast);
  const auto tables = gpu_attribute(GpuAttribute::reads_host_page_tables);
  EXPECT_EQ(static_cast<bool>(multicast), static_cast<bool>(tables));
  if (!multicast) {
    EXPECT_EQ(multicast.error().message, tables.error().message);
    EXPECT_FALSE(multicast.error().message.empty());
  }
}

}  // namespace
}  // namespace gauntlet
