// NVML through dlopen: clocks, power, temperature and the reasons a GPU is being slowed. No header is needed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet {

struct GpuState {
  double sm_clock_mhz = 0;
  double memory_clock_mhz = 0;
  double power_w = 0;
  double temperature_c = 0;
  std::uint64_t throttle_bits = 0;
  bool thermal_slowdown = false;  // hardware or software thermal: timings of this moment do not count
  std::vector<std::string> throttle_reasons;  // "power cap", "hw thermal", ...; idle is not a reason
};

struct GpuProcess {
  unsigned pid = 0;
  std::int64_t memory_bytes = 0;
};

class Nvml {
 public:
  /// The library is loaded once per object; an error says what is missing.
  static Expected<std::unique_ptr<Nvml>> open();
  ~Nvml();

  int device_count() const;
  Expected<GpuState> state(int device) const;
  Expected<std::string> driver_version() const;
  /// Compute processes on the device other than this one.
  Expected<std::vector<GpuProcess>> foreign_processes(int device) const;
  Expected<bool> persistence_mode(int device) const;
  Expected<bool> mig_enabled(int device) const;
  Expected<double> max_sm_clock_mhz(int device) const;
  Expected<double> power_limit_w(int device) const;

 private:
  Nvml() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gauntlet
