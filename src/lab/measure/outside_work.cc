#include "lab/measure/outside_work.h"

#include <fmt/format.h>

namespace gauntlet::lab::inline measure {
namespace {

// A GPU that is idle answers within 10 us. A thread that a side has waited for needs a moment to
// fall asleep; one that works uses all of the 100 us that are listened for.
constexpr double kGpuSlackNs = 25e3;
constexpr double kGpuShare = 0.01;
constexpr double kCpuSlackNs = 40e3;
// Disturbances come now and then; a side that works outside of its clock does so to gain by it, and
// gains nothing by fewer samples than these.
constexpr int kStrikes = 3;
constexpr double kShareOfSamples = 0.05;

bool beyond(BackendKind backend, double outside_ns, double sample_ns) {
  if (backend == BackendKind::cuda) return outside_ns > kGpuSlackNs + kGpuShare * sample_ns;
  return outside_ns > kCpuSlackNs;
}

}  // namespace

double OutsideWork::with_uncounted(const Timing& timing) const {
  const bool counts = backend_ == BackendKind::cuda && beyond(backend_, timing.after_ns, timing.ns);
  return timing.ns + (counts ? timing.after_ns : 0);
}

void OutsideWork::see(std::size_t side, const Timing& timing) {
  Count& count = sides_[side];
  ++count.samples;
  count.left_process |= timing.left_process;
  if (beyond(backend_, timing.before_ns, timing.ns)) {
    ++count.before;
    if (timing.before_ns > count.worst_before.before_ns) count.worst_before = timing;
  }
  if (beyond(backend_, timing.after_ns, timing.ns)) {
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
