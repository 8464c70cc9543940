// Where the time of GPU steps goes, kernel by kernel, out of a trace.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet::lab::inline profile {

struct KernelShare {
  std::string name;  // "gate_up: prefill_kernel"; "idle" for the time between kernels
  double launches_per_step = 0;
  double us_per_step = 0;  // together they add up to the step
};

/// `trace`: of trace_gpu(), over so many steps. A moment that two kernels share belongs to the one
/// that started first.
Expected<std::vector<KernelShare>> kernel_shares(const std::string& trace, std::int64_t steps);

}  // namespace gauntlet::lab::inline profile
