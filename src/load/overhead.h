// What the client itself costs, and how late its timestamps are: measured against a server that
// computes nothing.
#pragma once
#include <cstdint>
#include <string>

#include "core/expected.h"
#include "load/results/metrics.h"

namespace gauntlet::load {

struct OverheadOptions {
  std::int64_t num_streams = 2000;  // all at once
  std::int64_t num_tokens = 64;     // of each
  double interval_s = 0.1;          // between the tokens of a stream
};

struct Overhead {
  std::int64_t num_events = 0;
  std::int64_t num_failed = 0;
  double cpu_us_per_event = 0;   // of the client's thread, with connecting and sending
  double user_us_per_event = 0;  // of that, outside of the kernel
  double cpu_share = 0;          // of one core, while it ran
  double events_per_s = 0;
  stats::Percentiles delay_s;  // from just before the server's write to the client's timestamp
};

Expected<Overhead> measure_overhead(const OverheadOptions& options);

std::string json_text(const OverheadOptions& options, const Overhead& result);

}  // namespace gauntlet::load
