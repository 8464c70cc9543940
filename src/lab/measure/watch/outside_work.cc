#include "lab/measure/watch/outside_work.h"

#include <fmt/format.h>

#include <algorithm>

namespace gauntlet::lab::inline measure {
namespace {

// What is forgiven, not given: it is added to the time all the same. A host that is interrupted
// sees an idle GPU late, and 50 us late after a graph with conditional nodes. A thread that a side
// has waited for needs a moment to fall asleep; one that works goes on for longer. To launch on a
// GPU a thread needs some microseconds.
constexpr double kGpuSlackNs = 60e3;
constexpr double kGpuShare = 0.01;
constexpr double kCpuSlackNs = 40e3;
constexpr double kLaunchSlackNs = 10e3;
// Disturbances come now and then; a side that works outside of its clock does so to gain by it, and
// gains nothing by fewer samples than these.
constexpr int kStrikes = 3;
constexpr double kShareOfSamples = 0.05;

bool beyond(BackendKind backend, double outside_ns, double sample_ns) {
  if (backend == BackendKind::cuda) return outside_ns > kGpuSlackNs + kGpuShare * sample_ns;
  return outside_ns > kCpuSlackNs;
}

bool may_hold_processes(Helpers helpers) {
  return helpers == Helpers::processes || helpers == Helpers::threads_and_processes;
}

}  // namespace

double OutsideWork::with_uncounted(std::size_t side, const Timing& timing, Helpers helpers) const {
  const bool is_baseline = side == 0;
  if (helpers == Helpers::none && is_baseline) return timing.ns;
  return timing.ns + timing.before_ns + timing.after_ns;
}

void OutsideWork::see(std::size_t side, const Timing& timing, Helpers helpers) {
  Count& count = sides_[side];
  ++count.samples;
  count.left_process |= timing.left_process && !may_hold_processes(helpers);
  if (helpers != Helpers::none) count.restless += timing.restless;
  if (helpers == Helpers::none && timing.host_ns > kLaunchSlackNs) {
    ++count.host;
    count.worst_host_ns = std::max(count.worst_host_ns, timing.host_ns);
  }
  if (beyond(backend_, timing.before_ns, timing.ns)) {
    ++count.before;
    if (timing.before_ns > count.worst_before.before_ns) count.worst_before = timing;
  }
  if (helpers == Helpers::none && beyond(backend_, timing.after_ns, timing.ns)) {
    ++count.after;
    if (timing.after_ns > count.worst_after.after_ns) count.worst_after = timing;
  }
}

std::optional<std::string> OutsideWork::found(std::size_t side) const {
  const Count& count = sides_[side];
  if (count.left_process) {
    return "left a process of its own running: what it does is not timed";
  }
  const auto often = [&](int strikes) {
    return strikes >= kStrikes && strikes >= kShareOfSamples * count.samples;
  };
  if (often(count.restless)) {
    return fmt::format(
        "holds threads or processes that go on working after it returned, without coming to rest "
        "({} of {} samples)",
        count.restless, count.samples);
  }
  const bool gpu = backend_ == BackendKind::cuda;
  if (often(count.after)) {
    const Timing& worst = count.worst_after;
    return gpu ? fmt::format(
                     "does work outside of its stream: events saw {:.3f} ms, and the device "
                     "was busy for {:.3f} ms more ({} of {} samples)",
                     worst.ns / 1e6, worst.after_ns / 1e6, count.after, count.samples)
               : fmt::format(
                     "was timed beside work that goes on after a side returned: threads that "
                     "the lab does not know used {:.0f} us of CPU time after a sample ended "
                     "({} of {} samples)",
                     worst.after_ns / 1e3, count.after, count.samples);
  }
  if (often(count.host)) {
    return fmt::format(
        "was timed beside threads that the lab does not know, which may launch work while no clock "
        "runs: they used {:.0f} us of CPU time before and after a sample ({} of {} samples)",
        count.worst_host_ns / 1e3, count.host, count.samples);
  }
  if (often(count.before)) {
    const Timing& worst = count.worst_before;
    return gpu ? fmt::format(
                     "does work before its clock starts: the device was busy for {:.3f} ms "
                     "when nothing had been asked of it ({} of {} samples)",
                     worst.before_ns / 1e6, count.before, count.samples)
               : fmt::format(
                     "does work before its clock starts: threads that the lab does not know "
                     "used {:.0f} us of CPU time while its inputs were made ({} of {} "
                     "samples)",
                     worst.before_ns / 1e3, count.before, count.samples);
  }
  return std::nullopt;
}

}  // namespace gauntlet::lab::inline measure
