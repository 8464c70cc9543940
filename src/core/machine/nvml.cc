// The ABI below is NVML's own: opaque handles, C enums as int, and the versioned names (_v2, _v3)
// that fix a struct's layout. Symbols a driver lacks are null and their readings say so.
#include "core/machine/nvml.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "core/os/dynamic_library.h"

namespace gauntlet {
namespace {

using Handle = struct NvmlDevice*;
using Status = int;

constexpr Status kSuccess = 0;
constexpr Status kNotSupported = 3;
constexpr Status kInsufficientSize = 7;
constexpr Status kFunctionNotFound = 13;

constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kSensorGpu = 0;

struct ProcessInfo {  // nvmlProcessInfo_v2_t, which the _v3 query fills
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct Utilization {  // nvmlUtilization_t: percent
  unsigned gpu;
  unsigned memory;
};
struct Memory {  // nvmlMemory_t: bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Reason {
  std::uint64_t bit;
  const char* name;  // null: says nothing about speed
};
constexpr std::uint64_t kSoftwareThermal = 0x20;
constexpr std::uint64_t kHardwareThermal = 0x40;
constexpr std::array<Reason, 9> kReasons = {{{0x1, nullptr},
                                             {0x2, "application clocks"},
                                             {0x4, "power cap"},
                                             {0x8, "hw slowdown"},
                                             {0x10, "sync boost"},
                                             {kSoftwareThermal, "sw thermal"},
                                             {kHardwareThermal, "hw thermal"},
                                             {0x80, "hw power brake"},
                                             {0x100, "display clocks"}}};

}  // namespace

std::vector<std::string> throttle_reasons(std::uint64_t bits) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) && reason.name) names.emplace_back(reason.name);
    bits &= ~reason.bit;
  }
  for (int bit = 0; bit < 64; ++bit) {
    if (bits >> bit & 1) names.push_back(fmt::format("bit {}", bit));
  }
  return names;
}

bool is_thermal_slowdown(std::uint64_t bits) {
  return (bits & (kSoftwareThermal | kHardwareThermal)) != 0;
}

struct Nvml::State {
  DynamicLibrary library;
  bool initialised = false;

  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  const char* (*error_string)(Status) = nullptr;
  Status (*driver_version)(char*, unsigned) = nullptr;
  Status (*count)(unsigned*) = nullptr;
  Status (*handle_by_index)(unsigned, Handle*) = nullptr;
  Status (*handle_by_uuid)(const char*, Handle*) = nullptr;
  Status (*index)(Handle, unsigned*) = nullptr;
  Status (*clock)(Handle, int, unsigned*) = nullptr;
  Status (*max_clock)(Handle, int, unsigned*) = nullptr;
  Status (*power)(Handle, unsigned*) = nullptr;
  Status (*power_limit)(Handle, unsigned*) = nullptr;
  Status (*total_energy)(Handle, unsigned long long*) = nullptr;
  Status (*temperature)(Handle, int, unsigned*) = nullptr;
  Status (*event_reasons)(Handle, unsigned long long*) = nullptr;
  Status (*utilization)(Handle, Utilization*) = nullptr;
  Status (*memory)(Handle, Memory*) = nullptr;
  Status (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Status (*persistence)(Handle, int*) = nullptr;
  Status (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;

  explicit State(DynamicLibrary loaded) : library(std::move(loaded)) {
    load(init, {"nvmlInit_v2"});
    load(shutdown, {"nvmlShutdown"});
    load(error_string, {"nvmlErrorString"});
    load(driver_version, {"nvmlSystemGetDriverVersion"});
    load(count, {"nvmlDeviceGetCount_v2"});
    load(handle_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
    load(handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
    load(index, {"nvmlDeviceGetIndex"});
    load(clock, {"nvmlDeviceGetClockInfo"});
    load(max_clock, {"nvmlDeviceGetMaxClockInfo"});
    load(power, {"nvmlDeviceGetPowerUsage"});
    load(power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
    load(total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
    load(temperature, {"nvmlDeviceGetTemperature"});
    // The same query; drivers from 535 on call throttle reasons event reasons.
    load(event_reasons,
         {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
    load(utilization, {"nvmlDeviceGetUtilizationRates"});
    load(memory, {"nvmlDeviceGetMemoryInfo"});
    load(processes, {"nvmlDeviceGetComputeRunningProcesses_v3"});
    load(persistence, {"nvmlDeviceGetPersistenceMode"});
    load(mig_mode, {"nvmlDeviceGetMigMode"});
  }

  ~State() {
    if (initialised && shutdown) shutdown();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  template <class F>
  void load(F*& function, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto found = library.symbol<F>(name)) {
        function = *found;
        return;
      }
    }
  }

  template <class... Parameters, class... Arguments>
  Status call(Status (*function)(Parameters...), Arguments... arguments) const {
    return function ? function(arguments...) : kFunctionNotFound;
  }

  Error error(const std::string& what, Status status) const {
    const char* words = error_string ? error_string(status) : "no description";
    return {fmt::format("NVML cannot read the {}: {} (code {})", what, words, status)};
  }

  Expected<Handle> device(int number) const {
    Handle handle = nullptr;
    const Status status = call(handle_by_index, static_cast<unsigned>(number), &handle);
    if (status != kSuccess) return error(fmt::format("handle of GPU {}", number), status);
    return handle;
  }

  /// A reading of one number; nothing when the GPU does not report it.
  template <class Value, class Function, class... Arguments>
  Expected<std::optional<Value>> read(const char* what, Function* function, int number,
                                      Arguments... arguments) const {
    const Expected<Handle> handle = device(number);
    if (!handle) return handle.error();
    Value value{};
    const Status status = call(function, *handle, arguments..., &value);
    if (status == kNotSupported || status == kFunctionNotFound) return std::optional<Value>();
    if (status != kSuccess) return error(fmt::format("{} of GPU {}", what, number), status);
    return std::optional<Value>(value);
  }
};

Nvml::~Nvml() = default;

Expected<std::unique_ptr<Nvml>> Nvml::open() {
  auto library = DynamicLibrary::open({.names = {"libnvidia-ml.so.1"}, .folders = {}});
  if (!library) {
    return Error{
        "libnvidia-ml.so.1 cannot be loaded, so there are no GPU clocks, power or throttle "
        "reasons; "
        "it comes with the NVIDIA driver (in a container: driver capability 'utility')"};
  }
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->state_ = std::make_unique<State>(std::move(*library));
  State& state = *nvml->state_;
  const Status status = state.call(state.init);
  if (status != kSuccess) {
    return Error{fmt::format("nvmlInit_v2 failed: {} (code {}); see whether nvidia-smi works",
                             state.error_string ? state.error_string(status) : "no description",
                             status)};
  }
  state.initialised = true;
  return nvml;
}

int Nvml::device_count() const {
  unsigned count = 0;
  return state_->call(state_->count, &count) == kSuccess ? static_cast<int>(count) : 0;
}

Expected<int> Nvml::index_of(const std::string& uuid) const {
  const std::string full = uuid.starts_with("GPU-") ? uuid : "GPU-" + uuid;
  Handle handle = nullptr;
  Status status = state_->call(state_->handle_by_uuid, full.c_str(), &handle);
  unsigned index = 0;
  if (status == kSuccess) status = state_->call(state_->index, handle, &index);
  if (status != kSuccess) return state_->error("index of " + full, status);
  return static_cast<int>(index);
}

Expected<GpuState> Nvml::state(int device) const {
  const auto sm = state_->read<unsigned>("SM clock", state_->clock, device, kClockSm);
  if (!sm) return sm.error();
  const auto memory = state_->read<unsigned>("memory clock", state_->clock, device, kClockMemory);
  if (!memory) return memory.error();
  const auto power = state_->read<unsigned>("power", state_->power, device);
  if (!power) return power.error();
  const auto heat = state_->read<unsigned>("temperature", state_->temperature, device, kSensorGpu);
  if (!heat) return heat.error();
  const auto reasons =
      state_->read<unsigned long long>("throttle reasons", state_->event_reasons, device);
  if (!reasons) return reasons.error();

  const std::uint64_t bits = reasons->value_or(0);
  return GpuState{.sm_clock_mhz = static_cast<double>(sm->value_or(0)),
                  .memory_clock_mhz = static_cast<double>(memory->value_or(0)),
                  .power_w = power->value_or(0) / 1000.0,
                  .temperature_c = static_cast<double>(heat->value_or(0)),
                  .throttle_bits = bits,
                  .thermal_slowdown = is_thermal_slowdown(bits),
                  .throttle_reasons = throttle_reasons(bits)};
}

Expected<GpuUsage> Nvml::usage(int device) const {
  const auto busy = state_->read<Utilization>("utilization", state_->utilization, device);
  if (!busy) return busy.error();
  const auto memory = state_->read<Memory>("memory", state_->memory, device);
  if (!memory) return memory.error();
  GpuUsage usage;
  if (*busy) {
    usage.busy = (*busy)->gpu / 100.0;
    usage.memory_busy = (*busy)->memory / 100.0;
  }
  if (*memory) {
    usage.memory_used_bytes = static_cast<double>((*memory)->used);
    usage.memory_total_bytes = static_cast<double>((*memory)->total);
  }
  return usage;
}

Expected<std::optional<double>> Nvml::energy_j(int device) const {
  const auto millijoules = state_->read<unsigned long long>("energy", state_->total_energy, device);
  if (!millijoules) return millijoules.error();
  if (!*millijoules) return std::optional<double>();
  return std::optional<double>(static_cast<double>(**millijoules) / 1000);
}

Expected<std::string> Nvml::driver_version() const {
  std::array<char, 96> text{};
  const Status status =
      state_->call(state_->driver_version, text.data(), static_cast<unsigned>(text.size()));
  if (status != kSuccess) return state_->error("driver version", status);
  return std::string(text.data());
}

Expected<std::vector<GpuProcess>> Nvml::foreign_processes(int device) const {
  const Expected<Handle> handle = state_->device(device);
  if (!handle) return handle.error();
  std::vector<ProcessInfo> infos(16);
  Status status = kInsufficientSize;
  unsigned count = 0;
  // Processes may start between two queries; each answer says how much room it wanted.
  for (int attempt = 0; attempt < 4 && status == kInsufficientSize; ++attempt) {
    if (count > infos.size()) infos.resize(count + 16);
    count = static_cast<unsigned>(infos.size());
    status = state_->call(state_->processes, *handle, &count, infos.data());
  }
  if (status != kSuccess) {
    return state_->error(fmt::format("compute processes of GPU {}", device), status);
  }
  // All ones stands for "not available" (a container without the right to see it).
  constexpr unsigned long long kUnknown = ~0ULL;
  std::vector<GpuProcess> processes;
  for (unsigned i = 0; i < count; ++i) {
    if (infos[i].pid == static_cast<unsigned>(getpid())) continue;
    const unsigned long long bytes = infos[i].memory_bytes;
    processes.push_back({.pid = infos[i].pid,
                         .memory_bytes = bytes == kUnknown ? 0 : static_cast<std::int64_t>(bytes)});
  }
  return processes;
}

Expected<bool> Nvml::persistence_mode(int device) const {
  const auto mode = state_->read<int>("persistence mode", state_->persistence, device);
  if (!mode) return mode.error();
  if (!*mode)
    return state_->error(fmt::format("persistence mode of GPU {}", device), kNotSupported);
  return **mode != 0;
}

Expected<bool> Nvml::mig_enabled(int device) const {
  const Expected<Handle> handle = state_->device(device);
  if (!handle) return handle.error();
  unsigned current = 0, pending = 0;
  const Status status = state_->call(state_->mig_mode, *handle, &current, &pending);
  if (status == kNotSupported || status == kFunctionNotFound) return false;
  if (status != kSuccess) return state_->error(fmt::format("MIG mode of GPU {}", device), status);
  return current != 0;
}

Expected<double> Nvml::max_sm_clock_mhz(int device) const {
  const auto mhz = state_->read<unsigned>("highest SM clock", state_->max_clock, device, kClockSm);
  if (!mhz) return mhz.error();
  if (!*mhz) return state_->error(fmt::format("highest SM clock of GPU {}", device), kNotSupported);
  return static_cast<double>(**mhz);
}

Expected<double> Nvml::power_limit_w(int device) const {
  const auto milliwatts = state_->read<unsigned>("power limit", state_->power_limit, device);
  if (!milliwatts) return milliwatts.error();
  if (!*milliwatts)
    return state_->error(fmt::format("power limit of GPU {}", device), kNotSupported);
  return **milliwatts / 1000.0;
}

std::function<std::optional<GpuState>()> gpu_sensors(const std::string& uuid) {
  const auto none = [] { return std::optional<GpuState>(); };
  auto opened = Nvml::open();
  if (!opened) return none;
  const std::shared_ptr<Nvml> nvml = std::move(*opened);
  const auto device = nvml->index_of(uuid);
  if (!device) return none;
  return [nvml, at = *device]() -> std::optional<GpuState> {
    const auto state = nvml->state(at);
    return state ? std::optional(*state) : std::nullopt;
  };
}

}  // namespace gauntlet
