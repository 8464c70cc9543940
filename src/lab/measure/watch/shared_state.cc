#include "lab/measure/watch/shared_state.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cerrno>

namespace gauntlet::lab::inline measure {
namespace {

/// Without the flags that arithmetic raises as it goes.
std::uint32_t float_mode() {
#if defined(__x86_64__)
  constexpr std::uint32_t kRaised = 0x3F;
  return _mm_getcsr() & ~kRaised;
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return static_cast<std::uint32_t>(control);
#else
  return 0;
#endif
}

bool is_same(const rlimit& a, const rlimit& b) {
  return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
}

}  // namespace

SharedState SharedState::read(const std::vector<pid_t>& threads) {
  SharedState state;
  for (const pid_t id : threads) {
    Thread thread;
    CPU_ZERO(&thread.cpus);
    // One that has ended is left out.
    if (sched_getaffinity(id, sizeof(thread.cpus), &thread.cpus) != 0) continue;
    errno = 0;
    thread.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(id));
    thread.policy = sched_getscheduler(id);
    if (errno == 0) state.threads_[id] = thread;
  }
  state.float_mode_ = float_mode();
  for (std::size_t i = 0; i < state.limits_.size(); ++i) {
    getrlimit(static_cast<__rlimit_resource_t>(i), &state.limits_[i]);
  }
  for (const auto timer : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval value{};
    getitimer(timer, &value);
    state.timers_[timer] = timerisset(&value.it_value) || timerisset(&value.it_interval);
  }
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    state.handlers_[static_cast<std::size_t>(signal)] = action.sa_handler;
  }
  return state;
}

std::string SharedState::changed_since(const SharedState& before) const {
  for (const auto& [id, then] : before.threads_) {
    const auto found = threads_.find(id);
    if (found == threads_.end()) continue;
    const Thread& now = found->second;
    if (!CPU_EQUAL(&now.cpus, &then.cpus)) return "the CPUs that a thread may run on";
    if (now.nice != then.nice) return fmt::format("a thread's nice value ({})", now.nice);
    if (now.policy != then.policy) return "a thread's scheduling policy";
  }
  if (float_mode_ != before.float_mode_) {
    return fmt::format("the floating-point mode ({:#x}, was {:#x})", float_mode_,
                       before.float_mode_);
  }
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (!is_same(limits_[i], before.limits_[i])) return fmt::format("resource limit {}", i);
  }
  if (timers_ != before.timers_) return "a timer that goes on";
  for (int signal = 1; signal < NSIG; ++signal) {
    const auto i = static_cast<std::size_t>(signal);
    if (handlers_[i] != before.handlers_[i]) return fmt::format("the handler of signal {}", signal);
  }
  return "";
}

}  // namespace gauntlet::lab::inline measure
