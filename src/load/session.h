// A load test from its settings to its result: one run, or a sweep of them.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "core/expected.h"
#include "load/http/client.h"
#include "load/results/result.h"
#include "load/sweep.h"
#include "load/workload/prepare.h"

namespace gauntlet::load {

struct SessionSpec {
  ClientConfig client;
  PrepareOptions prepare;
  ArrivalSpec arrivals;
  WorkloadSpec workload;
  bool ignore_eos = false;
  std::optional<double> temperature;
  Slo slo;
  std::optional<SweepSpec> sweep;
  std::int64_t num_requests =
      0;  // of each run; with both limits, the first that is reached ends it
  double duration_s = 0;
  std::int64_t num_warmup = 0;
  /// `load` is the sweep's, or none.
  std::function<void(std::optional<double> load, const Progress& progress)> on_progress;
  const std::atomic<bool>* stop = nullptr;
};

/// `command_line`, `started_at` and `version` are left to the caller.
Expected<LoadResult> run_session(const SessionSpec& spec);

}  // namespace gauntlet::load
