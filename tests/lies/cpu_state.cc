// Sides on a CPU that change the state of their process, so that the other side is slow in it; and
// honest twins that put everything back within a run.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <map>
#include <string>

#include "tests/lies/lie.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies {
namespace {

// Handlers take no argument, so what they find is in variables of the file.
volatile sig_atomic_t handled = 0;
const float* protected_page = nullptr;
constexpr std::uintptr_t kPageBytes = 4096;

void burn_a_while(int) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Urgent by itself, and less so whoever comes after it.
lab::Side leaves_nice(const Params& p, const lab::Cpu&) {
  lab::Side side([p] { scale(p); });
  side.enter = [] { setpriority(PRIO_PROCESS, 0, 0); };
  side.leave = [] { setpriority(PRIO_PROCESS, 0, 10); };
  return side;
}

lab::Side leaves_rounding(const Params& p, const lab::Cpu&) {
  return [p, calls = 0]() mutable {
    scale(p);
    if (++calls > 8) std::fesetround(FE_UPWARD);
  };
}

/// A timer whose handler costs the other side its time.
lab::Side leaves_timer(const Params& p, const lab::Cpu&) {
  lab::Side side([p] { scale(p); });
  side.enter = [] {
    const itimerval off{};
    setitimer(ITIMER_REAL, &off, nullptr);
  };
  side.leave = [] {
    signal(SIGALRM, burn_a_while);
    const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 300},
                          .it_value = {.tv_sec = 0, .tv_usec = 300}};
    setitimer(ITIMER_REAL, &often, nullptr);
  };
  return side;
}

lab::Side restores_rounding(const Params& p, const lab::Cpu&) {
  return [p] {
    const int before = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    scale(p);
    std::fesetround(before);
  };
}

/// A handler that is called, and gone, within a run.
lab::Side handles_signal(const Params& p, const lab::Cpu&) {
  return [p] {
    struct sigaction counting{}, before{};
    counting.sa_handler = [](int) { handled = handled + 1; };
    sigaction(SIGUSR1, &counting, &before);
    const sig_atomic_t already = handled;
    raise(SIGUSR1);
    sigaction(SIGUSR1, &before, nullptr);
    if (handled == already + 1) scale(p);
  };
}

void unprotect(int, siginfo_t*, void*) {
  mprotect(const_cast<float*>(protected_page), kPageBytes, PROT_READ | PROT_WRITE);
}

/// Finds out by a page fault that it writes to a page, as a garbage collector would.
lab::Side protects_within_run(const Params& p, const lab::Cpu&) {
  return [p] {
    const auto inside =
        (reinterpret_cast<std::uintptr_t>(p.out) + kPageBytes - 1) & ~(kPageBytes - 1);
    protected_page = reinterpret_cast<const float*>(inside);
    struct sigaction action{}, before{};
    action.sa_sigaction = unprotect;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
    mprotect(reinterpret_cast<void*>(inside), kPageBytes, PROT_READ);
    scale(p);
    sigaction(SIGSEGV, &before, nullptr);
  };
}

/// Is fast for another reason than it claims, and says that a count moved which the lab keeps.
lab::Side states_count(const Params& p, const lab::Cpu&) {
  lab::Side side([p] { scale(p); });
  side.outcomes = [] { return std::map<std::string, double>{{"busy_cpus", 8}}; };
  return side;
}
/// The same, but not from the beginning.
lab::Side states_count_later(const Params& p, const lab::Cpu&) {
  lab::Side side([p] { scale(p); });
  side.outcomes = [asked = 0]() mutable {
    return std::map<std::string, double>{{++asked > 40 ? "busy_cpus" : "eagerness", 8}};
  };
  return side;
}

}  // namespace

std::vector<CpuLie<Params>> cpu_state_lies() {
  return {{"leaves_nice", leaves_nice},       {"leaves_rounding", leaves_rounding},
          {"leaves_timer", leaves_timer},     {"restores_rounding", restores_rounding},
          {"handles_signal", handles_signal}, {"protects_within_run", protects_within_run},
          {"states_count", states_count},     {"states_count_later", states_count_later}};
}

}  // namespace gauntlet::lies
