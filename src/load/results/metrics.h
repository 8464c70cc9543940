// From what was seen of each request to what is reported of a run.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "load/results/record.h"
#include "load/results/slo.h"
#include "load/workload/arrivals.h"
#include "stats/percentiles.h"

namespace gauntlet::load::inline results {

/// Blocks of neighbours that a run is cut into for its intervals.
inline constexpr std::size_t kBlocks = 20;

/// All that one run at one load recorded.
struct RunLog {
  std::vector<RequestRecord> requests;  // in order of index
  std::int64_t num_warmup = 0;          // the first of these are not reported
  double client_cpu_s = 0;              // of the client's thread, in the whole run
  double client_user_s = 0;             // of that, outside of the kernel
  bool is_interrupted = false;
};

struct ErrorCount {
  std::int64_t count = 0;
  std::string example;
};

/// Rates between the time when the first answers are in and the time the last request is sent: the
/// load is on all the while.
struct SteadyRates {
  double seconds = 0;
  stats::Interval requests_per_s;
  stats::Interval output_tokens_per_s;
};

/// One slice of the run, for charts.
struct Slice {
  double output_tokens_per_s = 0;
  double in_flight = 0;
  double ttft_s = -1;  // median of the requests due in it; -1 without any
};

struct PointResult {
  ArrivalSpec arrivals;
  std::int64_t num_requests = 0;
  std::int64_t num_ok = 0;
  std::map<std::string, ErrorCount> errors;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t output_tokens = 0;
  bool is_counted_by_server = true;  // else an event counts as a token
  double tokens_per_event = 1;

  double window_s = 0;  // from the first request's time to the last answer's end
  double offered_per_s =
      0;  // requests over the time in which they were due; of a closed loop: sent
  stats::Interval requests_per_s;  // answered in full; these three over the window
  stats::Interval output_tokens_per_s;
  stats::Interval total_tokens_per_s;
  std::optional<SteadyRates> steady;
  stats::Interval good_share;  // of the requests, by the SLO
  stats::Interval goodput_per_s;

  stats::Percentiles ttft_s;
  stats::Percentiles tpot_s;
  stats::Percentiles itl_s;
  stats::Percentiles e2e_s;
  stats::Percentiles
      send_lag_s;  // from when a request was due to when it was sent: the client's fault
  double concurrency_mean = 0;
  std::int64_t concurrency_max = 0;
  double client_us_per_event = 0;

  double slice_s = 0;
  std::vector<Slice> slices;
  /// Seconds at 1%, 2%, ... 100% of each latency, for charts.
  std::map<std::string, std::vector<float>> curves;
  bool is_interrupted = false;
};

PointResult summarize(const RunLog& log, const ArrivalSpec& arrivals, const Slo& slo,
                      std::uint64_t seed);

}  // namespace gauntlet::load::inline results
