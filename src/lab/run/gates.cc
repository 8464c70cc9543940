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

/// The ceilings that a side is held against: on a CPU a side of one thread has its own.
struct Against {
  const Ceilings& ceilings;
  Threads threads;
};

Rate rate_of(const Against& against, const std::string& name) {
  const auto& values = against.ceilings.values;
  auto found = against.threads == Threads::one ? values.find(name + "_1t") : values.end();
  if (found == values.end()) found = values.find(name);
  if (found == values.end()) return {};
  const double granted = 1 + std::max(kGrantedShare, found->second.spread);
  return {found->first, found->second.value * granted};
}

Rate fastest(const Against& against, std::initializer_list<const char*> names) {
  Rate best;
  for (const char* name : names) {
    const Rate rate = rate_of(against, name);
    if (rate.per_ns > best.per_ns) best = rate;
  }
  return best;
}

/// The cache that a run's buffers live in: what it moves may be many times as much. A pair that
/// names the first level is taken at its word.
Rate cache_rate(const Against& against, Cost::Level level, double working_set) {
  const CacheSizes& caches = against.ceilings.caches;
  if (against.ceilings.backend == BackendKind::cuda) {
    return level == Cost::Level::l1_cache ? rate_of(against, "l1_read")
                                          : rate_of(against, "l2_read");
  }
  if (level == Cost::Level::l1_cache || working_set <= caches.l1_bytes) {
    return fastest(against, {"l1_read", "l2_read"});
  }
  if (working_set <= caches.l2_bytes) return fastest(against, {"l2_read", "llc_read"});
  return fastest(against, {"llc_read", "dram_read", "dram_copy"});
}

struct Limit {
  double ns = 0;
  std::string what;
};

/// The least time for the bytes of a run. Of all runs of a sample together, the cache can have held
/// its own size when the sample began, and may still hold as much that is not yet written.
Limit memory_limit(const Cost& cost, const Measurement& process, std::int64_t repetitions,
                   const Against& against) {
  const Ceilings& ceilings = against.ceilings;
  const double bytes = cost.read_bytes + cost.write_bytes;
  if (bytes <= 0) return {};
  if (cost.level == Cost::Level::host_link) {
    const Rate in = rate_of(against, "h2d_pinned"), out = rate_of(against, "d2h_pinned");
    if (in.per_ns <= 0 || out.per_ns <= 0) return {};
    return {std::max(cost.read_bytes / in.per_ns, cost.write_bytes / out.per_ns),
            "the host's link"};
  }
  if (cost.level == Cost::Level::disk) {
    const Rate disk = rate_of(against, "disk_read");
    return disk.per_ns > 0 ? Limit{cost.read_bytes / disk.per_ns, "the disk"} : Limit{};
  }
  const double held = 2 * ceilings.caches.last_bytes / static_cast<double>(repetitions);
  const double from_dram =
      cost.level == Cost::Level::dram && !process.conditions.cold ? std::max(0.0, bytes - held)
      : cost.level == Cost::Level::dram ? std::max(0.0, bytes - ceilings.caches.last_bytes)
                                        : 0;
  const Rate dram = fastest(against, {"dram_read", "dram_copy", "dram_write"});
  const Rate cache = cache_rate(against, cost.level, static_cast<double>(process.set_bytes));
  if (dram.per_ns <= 0 || cache.per_ns <= 0) return {};
  // A core loads from its first level and stores to it in the same cycle; its ceiling counts loads.
  const bool overlap = cache.name.starts_with("l1_");
  const double from_cache =
      overlap && from_dram == 0 ? std::max(cost.read_bytes, cost.write_bytes) : bytes - from_dram;
  return {from_dram / dram.per_ns + from_cache / cache.per_ns,
          from_dram > 0 ? dram.name : cache.name};
}

Limit compute_limit(const Cost& cost, const Against& against) {
  const std::string type(name_of(cost.rate));
  Rate rate = rate_of(against, (cost.unit == Cost::Unit::matrix ? "matrix_" : "fma_") + type);
  if (rate.per_ns <= 0) rate = rate_of(against, "fma_" + type);
  if (cost.flops <= 0 || rate.per_ns <= 0) return {};
  return {cost.flops / rate.per_ns, rate.name};
}

}  // namespace

std::optional<std::string> above_ceiling(const Cost& cost, double ns, const Measurement& process,
                                         std::int64_t repetitions, const Ceilings& ceilings,
                                         Threads threads) {
  const Against against{ceilings, threads};
  const Limit memory = memory_limit(cost, process, std::max<std::int64_t>(repetitions, 1), against);
  const Limit compute = compute_limit(cost, against);
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
  if (!(read >= kLeastTraffic * cost.read_bytes)) return complain("read", read, cost.read_bytes);
  if (!(written >= kLeastTraffic * must_write))
    return complain("written", written, cost.write_bytes);
  return std::nullopt;
}

}  // namespace gauntlet::lab::inline run
