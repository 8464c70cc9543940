// What a trace of a GPU says in numbers, for witnesses: how much went on at a time, and how many
// calls of the host it took.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/profile/chrome_trace.h"

namespace gauntlet::lab::inline profile {

/// What a GPU did while it was recorded.
struct GpuTrace {
  std::vector<TraceEvent> events;
  std::int64_t dropped_records = 0;  // that found no room
};

/// Of kernels, copies and fills: "at_a_time" is how many were under way while any was (1 where one
/// follows the other), "launch_calls" how many calls of the host put them there (a graph is one,
/// whatever it holds), "activities" how many there were. Empty where the GPU did nothing.
std::map<std::string, double> trace_summary(const std::vector<TraceEvent>& events);

}  // namespace gauntlet::lab::inline profile
