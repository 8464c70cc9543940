// Profiling: counters of one run of each side, whose outputs are verified like any other's.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/measure/backend.h"
#include "lab/profile/profiler.h"

namespace gauntlet::lab::inline run {

struct SideProfile {
  std::map<std::string, double> counters;
  std::map<std::string, double> trace;  // trace_summary(), where a witness is read from it
};

/// What a profiling worker found.
struct ProfileOutcome {
  std::vector<SideProfile> sides;
  std::string why_not;  // when nothing could be collected
  std::string wrong;    // when a side gave a wrong result while it was profiled
  std::string trace_error;
};

struct ProfileJob {
  const Target& target;
  const Knobs& knobs;
  Backend& backend;
  ProfileLevel level = ProfileLevel::minimal;
  std::uint64_t seed = 1;
};

/// By the profiler that the machine has for the backend, and a trace where a witness needs one.
ProfileOutcome profile_target(const ProfileJob& job);
ProfileOutcome profile_target(const ProfileJob& job, Profiler& profiler);

using Tracer = std::function<Expected<GpuTrace>(const std::function<void()>& work)>;
/// Adds what a trace of one run of each side says; the outputs of that run are verified, too.
void trace_target(const ProfileJob& job, const Tracer& tracer, ProfileOutcome& outcome);

/// Three runs of each side as a trace for Chrome or Perfetto; an empty string or what failed.
std::string write_trace(const ProfileJob& job, const std::string& path);

}  // namespace gauntlet::lab::inline run
