#include "lab/measure/watch/child_processes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>

#include "core/os/files.h"
#include "lab/measure/watch/known_threads.h"

namespace gauntlet::lab::inline measure {
namespace {

constexpr std::size_t kMostDescendants = 4096;

/// The third field of a thread's or process's stat file and all that follow it: the name before
/// them may hold anything.
std::optional<std::istringstream> stat_fields(const std::string& folder) {
  const auto text = read_file(folder + "/stat");
  if (!text) return std::nullopt;
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  return std::istringstream(text->substr(name_end + 1));
}

/// In ticks since the machine started; 0 when the process is gone.
std::uint64_t start_time(pid_t process) {
  auto fields = stat_fields(fmt::format("/proc/{}", process));
  if (!fields) return 0;
  constexpr int kFieldsBefore = 19;  // it is the 22nd
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) *fields >> skipped;
  std::uint64_t ticks = 0;
  *fields >> ticks;
  return ticks;
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  for (const pid_t thread : thread_ids(process)) {
    const auto list = read_file(fmt::format("/proc/{}/task/{}/children", process, thread));
    if (!list) continue;
    std::istringstream ids(*list);
    for (pid_t id = 0; ids >> id;) children.push_back(id);
  }
  return children;
}

}  // namespace

bool is_runnable(pid_t process, pid_t thread) {
  auto fields = stat_fields(fmt::format("/proc/{}/task/{}", process, thread));
  char state = ' ';
  return fields && *fields >> state && state == 'R';
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool has_child_process() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

bool has_younger_sibling() {
  const pid_t own = getpid();
  if (getsid(0) != own) return false;
  const std::vector<pid_t> siblings = children_of(getppid());
  if (siblings.size() < 2) return false;
  const std::uint64_t started = start_time(own);
  return std::ranges::any_of(
      siblings, [&](pid_t sibling) { return sibling != own && start_time(sibling) >= started; });
}

std::vector<pid_t> descendants() {
  std::vector<pid_t> found = children_of(getpid());
  for (std::size_t next = 0; next < found.size() && found.size() < kMostDescendants; ++next) {
    const std::vector<pid_t> more = children_of(found[next]);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

ProcessUse use_of_descendants() {
  rusage ended{};
  getrusage(RUSAGE_CHILDREN, &ended);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  ProcessUse use{.cpu_ns = ns(ended.ru_utime) + ns(ended.ru_stime)};
  if (!has_child_process()) return use;
  for (const pid_t process : descendants()) {
    clockid_t clock{};
    if (clock_getcpuclockid(process, &clock) == 0) use.cpu_ns += read_clock_ns(clock);
    for (const pid_t thread : thread_ids(process)) {
      use.running += is_runnable(process, thread);
    }
  }
  return use;
}

}  // namespace gauntlet::lab::inline measure
