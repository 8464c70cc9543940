#include "lab/measure/watch/unknown_work.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "lab/measure/watch/child_processes.h"

namespace gauntlet::lab::inline measure {
namespace {

// Reading takes some microseconds; a thread that is taken off its CPU meanwhile reads again.
constexpr double kQuickReadNs = 20e3;
constexpr int kMostReads = 4;

using Clock = std::chrono::steady_clock;

// How long what a side left behind is listened for, after it was last heard.
constexpr auto kListenFor = std::chrono::microseconds(100);
// Helpers that a side declared come to rest within this much CPU time, or it is refused; within the
// other, much longer time by the clock, since on a loaded machine they wait for a CPU.
constexpr double kPatienceNs = 20e6;
constexpr auto kPatience = std::chrono::milliseconds(500);

double ns_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

}  // namespace

UnknownWork::Reading UnknownWork::read() const {
  // The process's clock counts what a running thread used when the scheduler last looked at it, up
  // to a tick of 4 ms ago; asking for the thread's own clock brings it up to date.
  Reading best;
  const pid_t process = getpid();
  for (const pid_t thread : thread_ids(process)) {
    if (known_->contains(thread)) continue;
    read_clock_ns(clock_of_thread(thread));
    best.threads_awake += is_runnable(process, thread);
  }
  known_->cpu_ns();
  for (int reads = 0; reads < kMostReads; ++reads) {
    const double before = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double known = known_->cpu_ns();
    const double after = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (reads == 0 || after - before < best.most_ns - best.least_ns) {
      best.least_ns = before - known;
      best.most_ns = after - known;
    }
    if (best.most_ns - best.least_ns < kQuickReadNs) break;
  }
  best.has_process = has_child_process();
  const ProcessUse use = use_of_descendants();
  best.processes_ns = use.cpu_ns;
  best.processes_awake = use.running;
  return best;
}

UnknownWork::Heard UnknownWork::listen(Clock::time_point stop) const {
  const Reading at_stop = read();
  Heard heard{.last = at_stop};
  double processes_ran_ns = 0;
  for (auto last_heard = stop, looked = stop;;) {
    const Reading now = read();
    const auto time = Clock::now();
    const bool awake = now.threads_awake > 0 || now.processes_awake > 0;
    if (awake || threads_ns(heard.last, now) > 0) last_heard = time;
    // The clock of another process is as old as its last tick: what it used before the stop would
    // count. It cannot have used more than it was seen to be awake.
    processes_ran_ns += heard.last.processes_awake * ns_between(looked, time);
    const double processes_ns = std::max(0.0, now.processes_ns - at_stop.processes_ns);
    heard.ns = threads_ns(at_stop, now) + std::min(processes_ns, processes_ran_ns);
    heard.restless = heard.ns > kPatienceNs || time - stop > kPatience;
    heard.last = now;
    looked = time;
    if (heard.restless || time - last_heard > kListenFor) return heard;
  }
}

double UnknownWork::threads_ns(const Reading& from, const Reading& to) {
  return std::max(0.0, to.least_ns - from.most_ns);
}

}  // namespace gauntlet::lab::inline measure
