#include "core/machine/energy.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "core/machine/nvml.h"

namespace gauntlet {
namespace {

constexpr const char* kPowercap = "/sys/class/powercap";

/// One zone's counter of microjoules, which begins anew after its highest value.
struct RaplZone {
  std::string folder;
  std::int64_t range_uj = 0;
  std::int64_t last_uj = 0;
  double joules = 0;

  bool update(const SystemFiles& files) {
    const auto now = files.number(folder + "/energy_uj");
    if (!now) return false;
    const std::int64_t passed = *now - last_uj;
    joules += 1e-6 * static_cast<double>(passed >= 0 ? passed : passed + range_uj);
    last_uj = *now;
    return true;
  }
};

/// What is inside a package is part of its count; the memory beside it is not.
bool counts(const std::string& name) { return name.starts_with("package") || name == "dram"; }

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

double PowerIntegral::add(double seconds, double watts) {
  if (begun_) joules_ += (seconds - last_s_) * (watts + last_w_) / 2;
  begun_ = true;
  last_s_ = seconds;
  last_w_ = watts;
  return joules_;
}

Expected<EnergyMeter> EnergyMeter::of_cpu(const SystemFiles& files) {
  std::vector<RaplZone> zones;
  std::string names, closed;
  for (const std::string& entry : files.list(kPowercap)) {
    RaplZone zone{.folder = fmt::format("{}/{}", kPowercap, entry)};
    const auto name = files.text(zone.folder + "/name");
    if (!name || !counts(*name)) continue;
    const auto start = files.number(zone.folder + "/energy_uj");
    if (!start) {
      closed = zone.folder + "/energy_uj";
      continue;
    }
    zone.last_uj = *start;
    zone.range_uj = files.number(zone.folder + "/max_energy_range_uj").value_or(0);
    zones.push_back(zone);
    names += (names.empty() ? "" : ", ") + *name;
  }
  if (zones.empty() && !closed.empty()) {
    return Error{
        fmt::format("{} cannot be read: its reader must be root, or be allowed to", closed)};
  }
  if (zones.empty()) return Error{fmt::format("{} shows no counter of energy", kPowercap)};
  const auto shared = std::make_shared<std::vector<RaplZone>>(std::move(zones));
  return EnergyMeter("RAPL: " + names, [shared, files]() -> Expected<double> {
    double all = 0;
    for (RaplZone& zone : *shared) {
      if (!zone.update(files)) return Error{zone.folder + "/energy_uj cannot be read any more"};
      all += zone.joules;
    }
    return all;
  });
}

Expected<EnergyMeter> EnergyMeter::of_gpu(const std::string& uuid) {
  auto opened = Nvml::open();
  if (!opened) return opened.error();
  const std::shared_ptr<Nvml> nvml = std::move(*opened);
  const auto device = nvml->index_of(uuid);
  if (!device) return device.error();
  const auto counted = nvml->energy_j(*device);
  if (!counted) return counted.error();
  if (*counted) {
    return EnergyMeter("NVML: energy counter", [nvml, at = *device]() -> Expected<double> {
      const auto joules = nvml->energy_j(at);
      if (!joules) return joules.error();
      return joules->value_or(0);
    });
  }
  const auto state = nvml->state(*device);
  if (!state) return state.error();
  if (state->power_w <= 0) return Error{"this GPU reports neither energy nor power"};
  const auto integral = std::make_shared<PowerIntegral>();
  integral->add(now_s(), state->power_w);
  return EnergyMeter("NVML: samples of power",
                     [nvml, integral, at = *device]() -> Expected<double> {
                       const auto now = nvml->state(at);
                       if (!now) return now.error();
                       return integral->add(now_s(), now->power_w);
                     });
}

}  // namespace gauntlet
