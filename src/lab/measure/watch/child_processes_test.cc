#include "lab/measure/watch/child_processes.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

namespace gauntlet::lab::inline measure {
namespace {

using Clock = std::chrono::steady_clock;

/// A child that does as it is told until this goes.
class Child {
 public:
  explicit Child(const std::function<void()>& work, unsigned long flags = SIGCHLD)
      : id_(static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr))) {
    if (id_ != 0) return;
    work();
    _exit(0);
  }
  ~Child() {
    if (id_ > 0) {
      kill(id_, SIGKILL);
      waitpid(id_, nullptr, __WALL);
    }
  }
  pid_t id() const { return id_; }
  /// Until it ended by itself.
  void wait() { EXPECT_GT(waitpid(std::exchange(id_, 0), nullptr, __WALL), 0); }

 private:
  pid_t id_;
};

void sleep_on() {
  while (true) pause();
}

bool comes_true(const std::function<bool()>& condition) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (Clock::now() < end) {
    if (condition()) return true;
  }
  return false;
}

TEST(ChildProcesses, sees_children_that_end_with_a_signal_and_such_as_do_not) {
  EXPECT_FALSE(has_child_process());
  for (const unsigned long flags : {static_cast<unsigned long>(SIGCHLD), 0ul}) {
    const Child child(sleep_on, flags);
    ASSERT_GT(child.id(), 0);
    EXPECT_TRUE(has_child_process()) << flags;
  }
  EXPECT_FALSE(has_child_process());
}

TEST(ChildProcesses, lists_children_of_children) {
  adopt_orphans();
  std::vector<pid_t> found;
  {
    const Child child([] {
      if (fork() >= 0) sleep_on();
    });
    EXPECT_TRUE(comes_true([&] { return (found = descendants()).size() == 2; }));
    EXPECT_EQ(std::erase(found, child.id()), 1u);
  }
  ASSERT_EQ(found.size(), 1u);
  kill(found[0], SIGKILL);
  EXPECT_EQ(waitpid(found[0], nullptr, 0), found[0]) << "it was adopted";
}

TEST(ChildProcesses, tells_running_ones_from_sleeping_ones) {
  {
    const Child child(sleep_on);
    EXPECT_TRUE(comes_true([] { return use_of_descendants().running == 0; }));
    const Child busy([] {
      while (true) {
      }
    });
    EXPECT_TRUE(comes_true([] { return use_of_descendants().running == 1; }));
    const double used = use_of_descendants().cpu_ns;
    EXPECT_TRUE(comes_true([&] { return use_of_descendants().cpu_ns > used + 1e6; }));
  }
  EXPECT_EQ(use_of_descendants().running, 0);
  EXPECT_GT(use_of_descendants().cpu_ns, 1e6) << "what was used stays when they end";
}

TEST(ChildProcesses, sees_one_that_was_cloned_into_the_care_of_the_parent) {
  // The leader of a session, like a worker, and what it clones.
  int answers[2];
  ASSERT_EQ(pipe(answers), 0);
  Child parent([&] {
    const pid_t leader = fork();
    if (leader == 0) {
      setsid();
      const bool before = has_younger_sibling();
      const auto cloned = static_cast<pid_t>(
          syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
      if (cloned == 0) sleep_on();
      const char answer[2] = {before ? 'y' : 'n', has_younger_sibling() ? 'y' : 'n'};
      if (cloned > 0) kill(cloned, SIGKILL);
      _exit(write(answers[1], answer, 2) == 2 ? 0 : 1);
    }
    while (waitpid(-1, nullptr, __WALL) > 0) {
    }
  });
  char answer[2] = {};
  ASSERT_EQ(read(answers[0], answer, 2), 2);
  parent.wait();
  EXPECT_EQ(answer[0], 'n');
  EXPECT_EQ(answer[1], 'y');
  close(answers[0]);
  close(answers[1]);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
