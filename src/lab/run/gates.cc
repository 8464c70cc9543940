#include "lab/run/gates.h"

#include <fmt/format.h>

#include <algorithm>

namespace gauntlet::lab::inline run {
namespace {

// Ceilings are the best of several methods; a side of the catalogue may still be a little better.
constexpr double kGrantedShare = 0.05;
constexpr double kLeastTraffic = 0.85;

/// A rate with the share by which the truth may be above it.
struct Rate {
  std::string name;
  double per_ns = 0;  // bytes or operations
};

Rate rate_of(const Ceilings& ceilings, const std::string& name) {
  const auto found = ceilings.values.find(name);
  if (found == ceilings.values.end()) return {};
  const double granted = 1 + std::max(kGrantedShare, found->second.spread);
  return {name, found->second.value * granted};
}

Rate fastest(const Ceilings& ceilings, std::initializer_list<const char*> names) {
  Rate best;
  for (const char* name : names) {
    const Rate rate = rate_of(ceilings, name);
    if (rate.per_ns > best.per_ns) best = rate;
  }
  return best;
}

/// The caches that can hold a working set, by size: what fits into one may all come from there.
Rate cache_rate(const Ceilings& ceilings, Cost::Level level, double bytes) {
  if (ceilings.backend == BackendKind::cuda) {
    return level == Cost::Level::l1_cache ? rate_of(ceilings, "l1_read")
                                          : rate_of(ceilings, "l2_read");
  }
  if (bytes <= ceilings.caches.l1_bytes) return fastest(ceilings, {"l1_read", "l2_read"});
  if (bytes <= ceilings.caches.l2_bytes) return fastest(ceilings, {"l2_read", "llc_read"});
  return fastest(ceilings, {"llc_read", "dram_read", "dram_copy"});
}

struct Limit {
  double ns = 0;
  std::string what;
};

/// The least time for the bytes of a run. Of all runs of a sample together, the cache can have held
/// its own size when the sample began, and may still hold as much that is not yet written.
Limit memory_limit(const Cost& cost, const Measurement& process, std::int64_t repetitions,
                   const Ceilings& ceilings) {
  const double bytes = cost.read_bytes + cost.write_bytes;
  if (bytes <= 0) return {};
  if (cost.level == Cost::Level::host_link) {
    const Rate in = rate_of(ceilings, "h2d_pinned"), out = rate_of(ceilings, "d2h_pinned");
    if (in.per_ns <= 0 || out.per_ns <= 0) return {};
    return {std::max(cost.read_bytes / in.per_ns, cost.write_bytes / out.per_ns),
            "the host's link"};
  }
  const double held = 2 * ceilings.caches.last_bytes / static_cast<double>(repetitions);
  const double from_dram =
      cost.level == Cost::Level::dram && !process.conditions.cold ? std::max(0.0, bytes - held)
      : cost.level == Cost::Level::dram ? std::max(0.0, bytes - ceilings.caches.last_bytes)
                                        : 0;
  const Rate dram = fastest(ceilings, {"dram_read", "dram_copy", "dram_write"});
  const Rate cache = cache_rate(ceilings, cost.level, bytes);
  if (dram.per_ns <= 0 || cache.per_ns <= 0) return {};
  return {from_dram / dram.per_ns + (bytes - from_dram) / cache.per_ns,
          from_dram > 0 ? dram.name : cache.name};
}

Limit compute_limit(const Cost& cost, const Ceilings& ceilings) {
  const std::string type(name_of(cost.rate));
  Rate rate = rate_of(ceilings, (cost.unit == Cost::Unit::matrix ? "matrix_" : "fma_") + type);
  if (rate.per_ns <= 0) rate = rate_of(ceilings, "fma_" + type);
  if (cost.flops <= 0 || rate.per_ns <= 0) return {};
  return {cost.flops / rate.per_ns, rate.name};
}

}  // namespace

std::optional<std::string> above_ceiling(const Cost& cost, double ns, const Measurement& process,
                                         std::int64_t repetitions, const Ceilings& ceilings) {
  const Limit memory =
      memory_limit(cost, process, std::max<std::int64_t>(repetitions, 1), ceilings);
  const Limit compute = compute_limit(cost, ceilings);
  const Limit& limit = memory.ns > compute.ns ? memory : compute;
  if (limit.ns <= 0 || ns >= limit.ns) return std::nullopt;
  return fmt::format(
      "{}: {:.1f} us, where {} allows no less than {:.1f} us for the work it declares; it skips "
      "work, "
      "or its cost is wrong",
      kImpossible, ns / 1e3, limit.what, limit.ns / 1e3);
}

std::optional<std::string> below_traffic(const Cost& cost, double read, double written,
                                         double cache_bytes) {
  if (cost.level != Cost::Level::dram) return std::nullopt;
  const double must_write = std::max(0.0, cost.write_bytes - cache_bytes);
  const auto complain = [](const char* verb, double moved, double declared) {
    return fmt::format(
        "moves less than its work needs: DRAM counters saw {:.1f} MB {}, and {:.1f} MB are "
        "declared; "
        "it skips work, or its cost is wrong",
        moved / 1e6, verb, declared / 1e6);
  };
  if (read < kLeastTraffic * cost.read_bytes) return complain("read", read, cost.read_bytes);
  if (written < kLeastTraffic * must_write) return complain("written", written, cost.write_bytes);
  return std::nullopt;
}

}  // namespace gauntlet::lab::inline run
