// A closed loop over the bare service: so many streams at a time, each followed by the next, and
// nothing between them and the engine. What a server adds is told by the same load through HTTP.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/serving/service.h"

namespace gauntlet::engine::inline measure {

struct ClosedLoop {
  std::int64_t streams = 16;
  std::int64_t prompt_tokens = 32;
  std::int64_t output_tokens = 256;
  std::int64_t requests = 48;  // measured: they follow one of each stream that is not

  /// "STREAMS:PROMPT:OUTPUT:REQUESTS".
  static Expected<ClosedLoop> parse(const std::string& text);
  /// Positions that all streams need at once, page ends included.
  std::int64_t positions() const;
};

/// Streams of equal length go in waves: prompts of all, then answers of all. Whole waves are
/// counted, from the first measured request's start to the last one's end, as a client would.
struct ClosedLoopRate {
  double seconds = 0;
  std::int64_t tokens = 0;
  double tokens_per_s = 0;
  std::vector<std::vector<std::int32_t>> texts;  // prompts and answers of all requests
  SpeculationCounts guessed;                     // likewise
  std::vector<double> gaps_us;  // between steps, as Executor::time_gaps() tells; of all requests
};

/// Greedy answers to distinct random prompts, with the service's policies and guesses. `progress`
/// gets the requests answered.
Expected<ClosedLoopRate> run_closed_loop(Executor& executor, const ServiceConfig& service,
                                         const ClosedLoop& loop,
                                         const std::function<void(std::int64_t done)>& progress);

}  // namespace gauntlet::engine::inline measure
