// A timeline as the JSON that chrome://tracing and ui.perfetto.dev open.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gauntlet::lab::inline profile {

/// A row of the timeline: rows with the same process stand together.
struct TraceRow {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::string process_name;
  std::string thread_name;
};

struct TraceEvent {
  using Value = std::variant<std::int64_t, double, std::string>;

  std::string name;
  std::string category;
  TraceRow row;
  std::int64_t start_ns = 0;
  std::optional<std::int64_t> duration_ns;  // none: a moment
  std::map<std::string, Value> args;
};

/// Times count from the first event. `dropped_records` is written down so that a gap can be told
/// from idleness.
std::string chrome_trace(const std::vector<TraceEvent>& events, std::int64_t dropped_records);

}  // namespace gauntlet::lab::inline profile
