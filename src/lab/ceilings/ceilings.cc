#include "lab/ceilings/ceilings.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/os/files.h"
#include "core/text/json_fields.h"
#include "lab/ceilings/ceiling_backends.h"
#include "stats/median.h"

namespace gauntlet::lab::inline ceilings {
namespace {

// Of the file. One of format 1, which lacks spreads and caches, of format 2, which lacks the disk,
// or of format 3, which has the disk's best pass, is measured again.
constexpr int kFormat = 4;
constexpr const char* kDisk = "disk_read";

const char* unit_of(const std::string& ceiling) {
  return ceiling.starts_with("fma_") || ceiling.starts_with("matrix_") ? "GFLOP/s" : "GB/s";
}

std::filesystem::path cache_folder() {
  // The specification of XDG says to ignore a relative path.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && cache[0] == '/') return cache;
  if (const char* home = std::getenv("HOME"); home && home[0] == '/') {
    return std::filesystem::path(home) / ".cache";
  }
  const passwd* user = getpwuid(getuid());
  return std::filesystem::path(user && user->pw_dir ? user->pw_dir : "/") / ".cache";
}

/// The rate that the truth is not above.
double at_most(const Ceiling& ceiling) { return ceiling.value * (1 + ceiling.spread); }

/// Rates by name, for one width of the machine, in units per nanosecond: GB/s is bytes per
/// nanosecond.
class Rates {
 public:
  Rates(const Ceilings& ceilings, Threads threads)
      : ceilings_(ceilings),
        suffix_(ceilings.backend != BackendKind::cuda && threads == Threads::one ? "_1t" : "") {}

  double operator[](const std::string& name) const { return ceilings_.get(name + suffix_); }

  /// Of what is the same for any width.
  double of_machine(const std::string& name) const { return ceilings_.get(name); }

  BackendKind backend() const { return ceilings_.backend; }

 private:
  const Ceilings& ceilings_;
  std::string suffix_;
};

/// Time of an amount at a rate: 0 for nothing, and nothing known when the rate is absent.
std::optional<double> time_ns(double amount, double rate) {
  if (amount <= 0) return 0.0;
  if (rate <= 0) return std::nullopt;
  return amount / rate;
}

std::optional<double> memory_ns(const Cost& cost, const Rates& rates) {
  switch (cost.level) {
    case Cost::Level::dram: {
      const double both = std::min(cost.read_bytes, cost.write_bytes);
      const auto copied = time_ns(2 * both, rates["dram_copy"]);
      const auto read = time_ns(cost.read_bytes - both, rates["dram_read"]);
      const auto written = time_ns(cost.write_bytes - both, rates["dram_write"]);
      if (!copied || !read || !written) return std::nullopt;
      return *copied + *read + *written;
    }
    case Cost::Level::cache:
      return time_ns(cost.read_bytes + cost.write_bytes,
                     rates[rates.backend() == BackendKind::cpu ? "llc_read" : "l2_read"]);
    case Cost::Level::l1_cache:
      return time_ns(cost.read_bytes + cost.write_bytes, rates["l1_read"]);
    case Cost::Level::host_link: {
      const auto in = time_ns(cost.read_bytes, rates["h2d_pinned"]);
      const auto out = time_ns(cost.write_bytes, rates["d2h_pinned"]);
      if (!in || !out) return std::nullopt;
      return std::max(*in, *out);
    }
    // A disk has one rate, whatever reads it: no number of threads makes it another disk.
    case Cost::Level::disk:
      return time_ns(cost.read_bytes, rates.of_machine(kDisk));
  }
  return std::nullopt;
}

std::optional<double> compute_ns(const Cost& cost, const Rates& rates) {
  const std::string type(name_of(cost.rate));
  double rate = rates[(cost.unit == Cost::Unit::matrix ? "matrix_" : "fma_") + type];
  if (rate <= 0 && cost.unit == Cost::Unit::matrix && rates.backend() == BackendKind::cpu) {
    rate = rates["fma_" + type];
  }
  return time_ns(cost.flops, rate);
}

}  // namespace

double Ceilings::get(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? 0 : found->second.value;
}

nlohmann::json to_json(const Ceilings& ceilings) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, ceiling] : ceilings.values) {
    nlohmann::json tries = nlohmann::json::array();
    for (const CeilingTry& entry : ceiling.tries) {
      tries.push_back({{"method", entry.method}, {"value", entry.value}});
    }
    values[name] = {{"value", ceiling.value},
                    {"unit", ceiling.unit},
                    {"method", ceiling.method},
                    {"spread", ceiling.spread},
                    {"tries", std::move(tries)}};
  }
  return {{"format", kFormat},
          {"machine_key", ceilings.machine_key},
          {"backend", name_of(ceilings.backend)},
          {"measured_at", ceilings.measured_at},
          {"caches",
           {{"l1_bytes", ceilings.caches.l1_bytes},
            {"l2_bytes", ceilings.caches.l2_bytes},
            {"last_bytes", ceilings.caches.last_bytes}}},
          {"values", std::move(values)}};
}

Expected<Ceilings> ceilings_from_json(const nlohmann::json& json) {
  try {
    if (const int format = json.at("format").get<int>(); format < 1 || format > kFormat) {
      return Error{fmt::format("ceilings of format {}, this version reads {}; measure them again",
                               format, kFormat)};
    }
    Ceilings ceilings;
    ceilings.machine_key = json.at("machine_key").get<std::string>();
    ceilings.measured_at = json.at("measured_at").get<std::int64_t>();
    const auto name = json.at("backend").get<std::string>();
    const auto backend = backend_from(name);
    if (!backend) {
      return Error{fmt::format("ceilings of an unknown backend '{}'; measure them again", name)};
    }
    ceilings.backend = *backend;
    if (const auto caches = json.find("caches"); caches != json.end()) {
      ceilings.caches = {.l1_bytes = number_at(*caches, "l1_bytes"),
                         .l2_bytes = number_at(*caches, "l2_bytes"),
                         .last_bytes = number_at(*caches, "last_bytes")};
    }
    for (const auto& [ceiling_name, value] : json.at("values").items()) {
      Ceiling ceiling{.value = value.at("value").get<double>(),
                      .unit = value.at("unit").get<std::string>(),
                      .method = value.at("method").get<std::string>(),
                      .spread = number_at(value, "spread"),
                      .tries = {}};
      if (!std::isfinite(ceiling.value) || ceiling.value <= 0) {
        return Error{fmt::format("the ceiling {} is {}, which no machine has; measure them again",
                                 ceiling_name, ceiling.value)};
      }
      for (const auto& entry : value.at("tries")) {
        ceiling.tries.push_back({.method = entry.at("method").get<std::string>(),
                                 .value = entry.at("value").get<double>()});
      }
      ceilings.values.emplace(ceiling_name, std::move(ceiling));
    }
    return ceilings;
  } catch (const nlohmann::json::exception& fault) {
    return Error{fmt::format("not a file of ceilings ({}); measure them again", fault.what())};
  }
}

void record(Ceilings& ceilings, const Probe& probe, std::vector<double> seconds) {
  check(!seconds.empty() && probe.amount > 0, "a try needs an amount and a time");
  const double best = std::ranges::min(seconds);
  check(best > 0, "a try that took no time");
  const double value = probe.amount / best * 1e-9;
  Ceiling& ceiling = ceilings.values[probe.ceiling];
  ceiling.unit = unit_of(probe.ceiling);
  ceiling.tries.push_back({.method = probe.method, .value = value});
  if (value > ceiling.value) {
    ceiling.value = value;
    ceiling.method = probe.method;
    ceiling.spread = stats::median(std::move(seconds)) / best - 1;
  }
}

void record_median(Ceilings& ceilings, const Probe& probe, std::vector<double> seconds) {
  check(!seconds.empty() && probe.amount > 0, "a try needs an amount and a time");
  std::ranges::sort(seconds);
  // One sample may be a host's cache.
  const double least = seconds[std::min<std::size_t>(1, seconds.size() - 1)];
  check(least > 0, "a try that took no time");
  const double value = probe.amount / stats::median(std::move(seconds)) * 1e-9;
  Ceiling& ceiling = ceilings.values[probe.ceiling];
  const double most = std::max(at_most(ceiling), probe.amount / least * 1e-9);
  ceiling.unit = unit_of(probe.ceiling);
  ceiling.tries.push_back({.method = probe.method, .value = value});
  if (value > ceiling.value) {
    ceiling.value = value;
    ceiling.method = probe.method;
  }
  ceiling.spread = most / ceiling.value - 1;
}

Ceilings measure_disk_ceiling(const MachineInfo& machine) {
  Ceilings ceilings{.machine_key = machine.cpu_key(),
                    .measured_at = static_cast<std::int64_t>(std::time(nullptr))};
  add_disk_ceiling(std::filesystem::temp_directory_path(), ceilings);
  return ceilings;
}

Expected<Ceilings> measure_ceilings(BackendKind backend, const MachineInfo& machine,
                                    const CeilingProgress& progress) {
  const CeilingProgress report = progress ? progress : [](const std::string&) {};
  Expected<Ceilings> measured = backend == BackendKind::cpu
                                    ? measure_cpu_ceilings(machine, report)
                                    : measure_cuda_ceilings(machine, report);
  if (!measured) return measured;
  measured->backend = backend;
  measured->machine_key = backend == BackendKind::cpu ? machine.cpu_key() : machine.gpu_key();
  const CpuInfo& cpu = machine.cpu;
  if (backend == BackendKind::cpu) {
    measured->caches = {.l1_bytes = static_cast<double>(cpu.l1d_bytes * cpu.cores),
                        .l2_bytes = static_cast<double>(cpu.l2_bytes * cpu.cores),
                        .last_bytes = static_cast<double>(cpu.last_level_bytes)};
  } else {
    measured->caches.last_bytes = static_cast<double>(machine.gpus.front().l2_bytes);
  }
  measured->measured_at = static_cast<std::int64_t>(std::time(nullptr));
  return measured;
}

std::string ceilings_path(const std::string& machine_key) {
  std::string name = machine_key;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '.' && c != '_') c = '-';
  }
  return cache_folder() / "gauntlet" / ("ceilings-" + name + ".json");
}

std::optional<Ceilings> load_ceilings(const std::string& machine_key) {
  const auto text = read_file(ceilings_path(machine_key));
  if (!text) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  Expected<Ceilings> ceilings = ceilings_from_json(json);
  if (!ceilings || ceilings->machine_key != machine_key) return std::nullopt;
  if (json.at("format").get<int>() < kFormat) return std::nullopt;
  return std::move(*ceilings);
}

Expected<void> save_ceilings(const Ceilings& ceilings) {
  const std::filesystem::path path = ceilings_path(ceilings.machine_key);
  if (auto made = make_folders(path.parent_path()); !made) return made;
  return atomic_write_file(path, to_json(ceilings).dump(2) + '\n');
}

Ceilings best_of(const Ceilings& a, const Ceilings& b) {
  Ceilings best = a;
  for (const auto& [name, ceiling] : b.values) {
    Ceiling& known = best.values[name];
    const double most = std::max(at_most(known), at_most(ceiling));
    if (ceiling.value > known.value) known = ceiling;
    // The spread of the others is how restless a moment was; a disk's is how fast it was seen.
    if (name == kDisk) known.spread = most / known.value - 1;
  }
  return best;
}

RooflinePoint place(const Cost& cost, double ns, const Ceilings& ceilings, Threads threads) {
  const Rates rates(ceilings, threads);
  RooflinePoint point;
  const double bytes = cost.read_bytes + cost.write_bytes;
  if (bytes > 0) point.intensity = cost.flops / bytes;
  const auto memory = memory_ns(cost, rates);
  const auto compute = compute_ns(cost, rates);
  if (!memory || !compute) return point;
  point.floor_ns = std::max(*memory, *compute);
  if (point.floor_ns <= 0) return point;
  const char* memory_name = cost.level == Cost::Level::disk ? "disk" : "memory";
  point.bound_by = *memory >= *compute ? memory_name : "compute";
  if (ns > 0) point.percent = 100 * point.floor_ns / ns;
  return point;
}

}  // namespace gauntlet::lab::inline ceilings
