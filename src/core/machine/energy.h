// Joules that a machine has used, from the counters it has: RAPL of a CPU, NVML of a GPU. Where
// there are none, the reason.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/os/system_files.h"

namespace gauntlet {

class EnergyMeter {
 public:
  /// The packages and memories that /sys/class/powercap counts.
  static Expected<EnergyMeter> of_cpu(const SystemFiles& files);
  /// Its energy counter; power times the time between readings where a GPU has none.
  static Expected<EnergyMeter> of_gpu(const std::string& uuid);

  /// A counter of joules that never turns back.
  EnergyMeter(std::string source, std::function<Expected<double>()> total_j)
      : source_(std::move(source)), total_j_(std::move(total_j)) {}

  /// "RAPL: package-0, dram"
  const std::string& source() const { return source_; }
  /// Since some moment: only differences mean anything. Wants to be read every second or so, as
  /// small counters turn over.
  Expected<double> joules() const { return total_j_(); }

 private:
  std::string source_;
  std::function<Expected<double>()> total_j_;
};

/// Joules since the first reading, of a power that is known at single moments.
class PowerIntegral {
 public:
  double add(double seconds, double watts);

 private:
  bool begun_ = false;
  double last_s_ = 0, last_w_ = 0, joules_ = 0;
};

}  // namespace gauntlet
