// The profilers behind make_profiler(), one per backend.
#pragma once
#include <memory>
#include <string>

#include "core/expected.h"
#include "lab/profile/profiler.h"

namespace gauntlet::lab::inline profile {

/// CUPTI's range profiler on the current device; no_cuda_profiler.cc answers where there is no
/// toolkit.
Expected<std::unique_ptr<Profiler>> make_cuda_profiler();

/// Perf events of this process, all of its threads.
Expected<std::unique_ptr<Profiler>> make_perf_profiler();

/// What a refused perf event is explained from.
struct PerfFacts {
  int paranoid = -1;             // kernel.perf_event_paranoid
  bool hardware_pmu = false;     // the kernel has a driver for this CPU's counters
  bool virtual_machine = false;  // a hypervisor decides what is exposed
};

PerfFacts read_perf_facts();

/// The sentence for a perf_event_open() of `event` that failed with errno `error`.
std::string perf_failure(const std::string& event, int error, const PerfFacts& facts);

}  // namespace gauntlet::lab::inline profile
