// How much of what several lanes (threads, streams, copy engines) did went on at the same time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace gauntlet {

struct TimeSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Time that lies in any of the spans; what overlaps counts once, and what ends before it begins
/// not at all.
inline std::int64_t covered_ns(std::vector<TimeSpan> spans) {
  std::erase_if(spans, [](const TimeSpan& span) { return span.end_ns <= span.begin_ns; });
  std::ranges::sort(spans, {}, &TimeSpan::begin_ns);
  std::int64_t covered = 0, reached = spans.empty() ? 0 : spans.front().begin_ns;
  for (const TimeSpan& span : spans) {
    covered += std::max<std::int64_t>(0, span.end_ns - std::max(span.begin_ns, reached));
    reached = std::max(reached, span.end_ns);
  }
  return covered;
}

/// How many lanes were at work while any was: 1 where they took turns, their number where all of
/// them worked all the time; 0 where none ever did. A lane counts once, whatever it does twice.
inline double lanes_at_a_time(const std::vector<std::vector<TimeSpan>>& lanes) {
  std::int64_t sum = 0;
  std::vector<TimeSpan> all;
  for (const std::vector<TimeSpan>& lane : lanes) {
    sum += covered_ns(lane);
    all.insert(all.end(), lane.begin(), lane.end());
  }
  const std::int64_t any = covered_ns(std::move(all));
  return any > 0 ? static_cast<double>(sum) / static_cast<double>(any) : 0;
}

}  // namespace gauntlet
