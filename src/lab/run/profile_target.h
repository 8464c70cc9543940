// Profiling: counters of one run of each side, whose outputs are verified like any other's.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "lab/measure/backend.h"
#include "lab/profile/profiler.h"

namespace gauntlet::lab::inline run {

struct SideProfile {
  std::map<std::string, double> counters;
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

/// By the profiler that the machine has for the backend.
ProfileOutcome profile_target(const ProfileJob& job);
ProfileOutcome profile_target(const ProfileJob& job, Profiler& profiler);

/// Three runs of each side as a trace for Chrome or Perfetto; an empty string or what failed.
std::string write_trace(const ProfileJob& job, const std::string& path);

}  // namespace gauntlet::lab::inline run
