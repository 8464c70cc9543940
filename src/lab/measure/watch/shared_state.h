// SharedState: what one side could leave changed to slow the other: where threads may run and how
// urgently, the rounding mode, limits, timers and signal handlers.
#pragma once
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gauntlet::lab::inline measure {

class SharedState {
 public:
  /// As it is for the calling thread, its process, and these threads of it.
  static SharedState read(const std::vector<pid_t>& threads);

  /// What is no longer as it was then, in words; empty: nothing. Threads that ended do not count.
  std::string changed_since(const SharedState& before) const;

 private:
  struct Thread {
    cpu_set_t cpus{};
    int nice = 0;
    int policy = 0;
  };
  std::map<pid_t, Thread> threads_;
  std::uint32_t float_mode_ = 0;  // rounding, denormals, traps: of the calling thread
  std::array<rlimit, RLIM_NLIMITS> limits_{};
  std::array<bool, 3> timers_{};  // whether they are armed: real, virtual, profiling
  std::array<void (*)(int), NSIG> handlers_{};
};

}  // namespace gauntlet::lab::inline measure
