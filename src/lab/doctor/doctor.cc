#include "lab/doctor/doctor.h"

#include <charconv>
#include <iterator>

#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {

const char* name_of(Finding::Level level) {
  switch (level) {
    case Finding::Level::ok:
      return "ok";
    case Finding::Level::warn:
      return "warn";
    case Finding::Level::fail:
      return "fail";
    case Finding::Level::unknown:
      return "unknown";
  }
  return "?";
}

bool has_capability(const SystemFiles& files, Capability capability) {
  const std::string mask = files.field("/proc/self/status", "CapEff").value_or("");
  std::uint64_t bits = 0;
  std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  return (bits >> static_cast<int>(capability)) & 1;
}

std::vector<Finding> run_doctor(const DoctorContext& context) {
  std::vector<Finding> findings;
  for (const auto& part : {check_cpu, check_numa, check_memory, check_interrupts, check_limits,
                           check_timing, check_profiling, check_gpus}) {
    auto found = part(context);
    std::move(found.begin(), found.end(), std::back_inserter(findings));
  }
  return findings;
}

}  // namespace gauntlet::lab::doctor
