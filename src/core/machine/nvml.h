// NVML through dlopen: clocks, power, temperature, use, and why a GPU is slowed. No header needed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  bool thermal_slowdown = false;  // by hardware or software: this moment's timings do not count
  std::vector<std::string> throttle_reasons;  // "power cap", "hw thermal", ...; never idle
};

/// What a GPU does not report is absent.
struct GpuUsage {
  std::optional<double> busy;         // part of the last second or less in which a kernel ran
  std::optional<double> memory_busy;  // the same of accesses to memory
  std::optional<double> memory_used_bytes;
  std::optional<double> memory_total_bytes;
};

/// The names of the bits NVML reports, without "idle"; an unknown one shows as "bit 9".
std::vector<std::string> throttle_reasons(std::uint64_t bits);
/// Hardware or software thermal slowdown.
bool is_thermal_slowdown(std::uint64_t bits);

struct GpuProcess {
  unsigned pid = 0;
  std::int64_t memory_bytes = 0;
};

/// Devices count in PCI order, whatever CUDA_VISIBLE_DEVICES says: index_of() finds a CUDA device.
class Nvml {
 public:
  /// The library is loaded once per object; an error says what is missing.
  static Expected<std::unique_ptr<Nvml>> open();
  ~Nvml();

  int device_count() const;
  /// `uuid` with or without its "GPU-".
  Expected<int> index_of(const std::string& uuid) const;
  /// What a GPU does not report stays 0.
  Expected<GpuState> state(int device) const;
  Expected<GpuUsage> usage(int device) const;
  /// Joules since the driver was loaded; nothing where a GPU does not count them.
  Expected<std::optional<double>> energy_j(int device) const;
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

/// Reads the state of the GPU with this UUID whenever it is called; nothing where NVML or the GPU
/// does not tell.
std::function<std::optional<GpuState>()> gpu_sensors(const std::string& uuid);

}  // namespace gauntlet
