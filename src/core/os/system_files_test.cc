#include "core/os/system_files.h"

#include <gtest/gtest.h>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

TEST(SystemFiles, reads_below_its_root) {
  FakeTree tree;
  tree.write("/proc/sys/vm/swappiness", "60\n");
  const SystemFiles files(tree.root());
  EXPECT_EQ(files.text("/proc/sys/vm/swappiness"), "60");
  EXPECT_EQ(files.number("/proc/sys/vm/swappiness"), 60);
}

TEST(SystemFiles, has_nothing_where_there_is_nothing) {
  FakeTree tree;
  tree.write("/word", "max\n");
  const SystemFiles files(tree.root());
  EXPECT_EQ(files.text("/absent"), std::nullopt);
  EXPECT_EQ(files.number("/absent"), std::nullopt);
  EXPECT_EQ(files.number("/word"), std::nullopt);
  EXPECT_TRUE(files.list("/absent").empty());
}

TEST(SystemFiles, finds_a_field_by_its_whole_key) {
  FakeTree tree;
  tree.write("/proc/meminfo", "MemTotal:  100 kB\nMemFree:    7 kB\n");
  const SystemFiles files(tree.root());
  EXPECT_EQ(files.field("/proc/meminfo", "MemFree"), "7 kB");
  EXPECT_EQ(files.field("/proc/meminfo", "Mem"), std::nullopt);
}

TEST(SystemFiles, lists_names_in_order) {
  FakeTree tree;
  tree.write("/d/b", "").write("/d/a", "");
  EXPECT_EQ(SystemFiles(tree.root()).list("/d"), (std::vector<std::string>{"a", "b"}));
}

TEST(LeadingNumber, refuses_what_does_not_fit) {
  EXPECT_EQ(leading_number("12 kB"), 12);
  EXPECT_EQ(leading_number("-1"), -1);
  EXPECT_EQ(leading_number("99999999999999999999"), std::nullopt);
  EXPECT_EQ(leading_number(""), std::nullopt);
}

TEST(CpuList, is_parsed_and_written) {
  EXPECT_EQ(parse_cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), (std::vector<int>{5}));
  EXPECT_TRUE(parse_cpu_list("").empty());
  EXPECT_TRUE(parse_cpu_list("x,0-99999999").empty());
  EXPECT_EQ(format_cpu_list({8, 3, 1, 2, 0}), "0-3,8");
  EXPECT_EQ(format_cpu_list({}), "");
}

}  // namespace
}  // namespace gauntlet
