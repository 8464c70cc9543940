#include "core/os/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string stat_line(int pid, const std::string& name, char state, int parent, int session,
                      int pages) {
  return std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) + " " +
         std::to_string(pid) + " " + std::to_string(session) +
         " 0 -1 4194560 5 0 0 0 1 2 3 4 20 0 1 0 99 123456 " + std::to_string(pages) + " 18446\n";
}

std::vector<pid_t> pids(const std::vector<ProcessEntry>& entries) {
  std::vector<pid_t> pids;
  for (const ProcessEntry& entry : entries) pids.push_back(entry.pid);
  return pids;
}

TEST(ReadProcesses, reads_parent_session_state_and_memory) {
  FakeTree tree;
  tree.write("/proc/12/stat", stat_line(12, "mpirun", 'S', 7, 12, 3));
  tree.write("/proc/meminfo", "MemTotal: 1 kB");
  const auto all = read_processes(SystemFiles(tree.root()));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].pid, 12);
  EXPECT_EQ(all[0].parent, 7);
  EXPECT_EQ(all[0].session, 12);
  EXPECT_EQ(all[0].state, 'S');
  EXPECT_EQ(all[0].start_ticks, 99);
  EXPECT_EQ(all[0].resident_bytes, 3 * sysconf(_SC_PAGESIZE));
}

TEST(ReadProcesses, is_not_misled_by_a_name_with_parentheses) {
  FakeTree tree;
  tree.write("/proc/12/stat", stat_line(12, "x) Z 1 1 1 (", 'R', 7, 5, 1));
  const auto all = read_processes(SystemFiles(tree.root()));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].state, 'R');
  EXPECT_EQ(all[0].session, 5);
}

TEST(ReadProcesses, leaves_out_what_it_cannot_read) {
  FakeTree tree;
  tree.write("/proc/12/stat", "12 (cut");
  tree.write("/proc/13/cmdline", "gone before its stat was read");
  EXPECT_THAT(read_processes(SystemFiles(tree.root())), IsEmpty());
}

TEST(ReadProcesses, finds_this_process) {
  const auto all = read_processes(SystemFiles());
  const auto own = process_tree(getpid(), all);
  EXPECT_THAT(pids(own), testing::Contains(getpid()));
}

TEST(ProcessTree, holds_the_session_whatever_the_parents) {
  EXPECT_THAT(pids(process_tree(10, {{.pid = 10, .parent = 1, .session = 10},
                                     {.pid = 11, .parent = 1, .session = 10},
                                     {.pid = 12, .parent = 1, .session = 1}})),
              ElementsAre(10, 11));
}

TEST(ProcessTree, holds_descendants_that_left_the_session) {
  EXPECT_THAT(pids(process_tree(10, {{.pid = 30, .parent = 20, .session = 30},
                                     {.pid = 20, .parent = 11, .session = 20},
                                     {.pid = 11, .parent = 1, .session = 10},
                                     {.pid = 40, .parent = 1, .session = 40}})),
              ElementsAre(30, 20, 11))
      << "the leader itself is gone";
}

TEST(ProcessTree, keeps_what_was_seen_though_its_parent_is_gone) {
  const std::vector<ProcessEntry> seen = {
      {.pid = 20, .parent = 10, .session = 20, .start_ticks = 5},
      {.pid = 21, .parent = 10, .session = 21, .start_ticks = 5}};
  EXPECT_THAT(pids(process_tree(10,
                                {{.pid = 20, .parent = 1, .session = 20, .start_ticks = 5},
                                 {.pid = 21, .parent = 1, .session = 21, .start_ticks = 6}},
                                seen)),
              ElementsAre(20))
      << "the second is another process of the same number";
}

}  // namespace
}  // namespace gauntlet
