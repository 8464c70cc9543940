// Gates: results that cannot be true. A side that is faster than the machine's ceilings allow, or
// moves less than the work needs, skipped something, or its pair declares the wrong cost.
#pragma once
#include <optional>
#include <string>

#include "lab/ceilings/ceilings.h"
#include "lab/measure/measure.h"
#include "lab/records/result.h"

namespace gauntlet::lab::inline run {

/// How a time is called that the ceilings do not allow.
inline constexpr const char* kImpossible = "is faster than this machine can be";

/// Why a side's time is impossible here: below what the fastest memory that can hold its buffers,
/// or the arithmetic units, need, with the ceiling's own uncertainty granted. A CPU side of one
/// thread is held against the ceilings of one.
std::optional<std::string> above_ceiling(const Cost& cost, double ns, const Measurement& process,
                                         std::int64_t repetitions, const Ceilings& ceilings,
                                         Threads threads = Threads::all);

/// Why a side's DRAM traffic is impossible: less than must be read, caches having been flushed, or
/// written but for what the cache may still hold. `read` and `written` as counted in one run.
std::optional<std::string> below_traffic(const Cost& cost, double read, double written,
                                         double cache_bytes);

}  // namespace gauntlet::lab::inline run
