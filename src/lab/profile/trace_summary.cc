#include "lab/profile/trace_summary.h"

#include <set>

#include "core/time_spans.h"

namespace gauntlet::lab::inline profile {
namespace {

bool is_gpu_work(const TraceEvent& event) {
  return event.category == "kernel" || event.category == "copy" || event.category == "set";
}

}  // namespace

std::map<std::string, double> trace_summary(const std::vector<TraceEvent>& events) {
  std::vector<std::vector<TimeSpan>> spans;  // a lane each: one stream can have two at a time
  std::set<std::int64_t> calls;
  for (const TraceEvent& event : events) {
    if (!is_gpu_work(event) || !event.duration_ns) continue;
    spans.push_back({{event.start_ns, event.start_ns + *event.duration_ns}});
    const auto call = event.args.find("correlation");
    if (call != event.args.end()) calls.insert(std::get<std::int64_t>(call->second));
  }
  if (spans.empty()) return {};
  return {{"at_a_time", lanes_at_a_time(spans)},
          {"launch_calls", static_cast<double>(calls.size())},
          {"activities", static_cast<double>(spans.size())}};
}

}  // namespace gauntlet::lab::inline profile
