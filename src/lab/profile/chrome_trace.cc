#include "lab/profile/chrome_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace gauntlet::lab::inline profile {
namespace {

using Json = nlohmann::ordered_json;

Json name_of_row(const char* what, const TraceRow& row, const std::string& name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", row.process},
          {"tid", row.thread},
          {"args", {{"name", name}}}};
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

Json event_json(const TraceEvent& event, std::int64_t origin_ns) {
  Json json = {{"ph", event.duration_ns ? "X" : "i"},
               {"name", event.name},
               {"cat", event.category},
               {"pid", event.row.process},
               {"tid", event.row.thread},
               {"ts", microseconds(event.start_ns - origin_ns)}};
  if (event.duration_ns) {
    json["dur"] = microseconds(*event.duration_ns);
  } else {
    json["s"] = "t";  // as high as its own row
  }
  for (const auto& [key, value] : event.args) {
    std::visit([&, &name = key](const auto& held) { json["args"][name] = held; }, value);
  }
  return json;
}

}  // namespace

std::string chrome_trace(const std::vector<TraceEvent>& events, std::int64_t dropped_records) {
  std::int64_t origin_ns = 0;
  if (!events.empty()) {
    origin_ns = std::min_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
                  return a.start_ns < b.start_ns;
                })->start_ns;
  }

  Json rows = Json::array();
  std::map<std::int64_t, bool> named_processes;
  std::map<std::pair<std::int64_t, std::int64_t>, bool> named_threads;
  Json timeline = Json::array();
  for (const TraceEvent& event : events) {
    const TraceRow& row = event.row;
    if (!std::exchange(named_processes[row.process], true)) {
      rows.push_back(name_of_row("process_name", row, row.process_name));
    }
    if (!std::exchange(named_threads[{row.process, row.thread}], true)) {
      rows.push_back(name_of_row("thread_name", row, row.thread_name));
    }
    timeline.push_back(event_json(event, origin_ns));
  }
  for (Json& event : timeline) rows.push_back(std::move(event));

  const Json trace = {{"displayTimeUnit", "ns"},
                      {"otherData", {{"dropped_records", dropped_records}}},
                      {"traceEvents", std::move(rows)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gauntlet::lab::inline profile
