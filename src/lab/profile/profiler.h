// Profilers: hardware counters of a stretch of work. CUPTI's range profiler on a GPU, perf events
// on a CPU.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/author/knobs.h"
#include "lab/profile/trace_summary.h"

namespace gauntlet::lab::inline profile {

enum class ProfileLevel { none, minimal, roofline, deep_dive };
std::optional<ProfileLevel> profile_level_from(const std::string& name);
const char* name_of(ProfileLevel level);

/// The counters a level collects beside the pair's witness, by backend.
std::vector<std::string> profile_metrics(ProfileLevel level, BackendKind backend);

class Profiler {
 public:
  virtual ~Profiler() = default;

  /// Runs `work` as often as the counters need passes; values are per run of `work`. `before_pass`
  /// (untimed, not counted) runs before each pass. One metric that cannot be had fails the call,
  /// and the error names it; a ratio over nothing (sectors per request without a request) is left
  /// out of the values.
  virtual Expected<std::map<std::string, double>> collect(
      const std::vector<std::string>& metrics, const std::function<void()>& work,
      const std::function<void()>& before_pass = {}) = 0;
};

/// An error says exactly what is missing ("perf events are not available: ...", "libcupti.so.13 not
/// found").
Expected<std::unique_ptr<Profiler>> make_profiler(BackendKind backend);

/// Checks metric names for a chip without needing a GPU ("GH100"); returns the unknown ones.
Expected<std::vector<std::string>> unknown_gpu_metrics(const std::string& chip,
                                                       const std::vector<std::string>& metrics);

/// Records kernels, copies and NVTX ranges while `work` runs.
Expected<GpuTrace> record_gpu(const std::function<void()>& work);

/// The same as a Chrome/Perfetto trace (JSON text).
Expected<std::string> trace_gpu(const std::function<void()>& work);

}  // namespace gauntlet::lab::inline profile
