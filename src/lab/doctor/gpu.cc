// Is the GPU there, alone, awake and unhindered?
#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <utility>

#include "core/os/system_files.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr const char* kNotAsked = "the driver does not answer";

std::string kernel_driver(const DoctorContext& context) {
  if (!context.nvml.driver_version.empty()) return context.nvml.driver_version;
  const auto text = context.files.text("/proc/driver/nvidia/version");
  if (!text) return "";
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..."
  for (const std::string& word : split_words(split_lines(*text + "\n").front())) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != word.npos) {
      return word;
    }
  }
  return "";
}

/// "13.0" as two numbers: 13.10 is newer than 13.2.
std::pair<std::int64_t, std::int64_t> comparable(const std::string& version) {
  const std::size_t point = version.find('.');
  const std::string minor = point == std::string::npos ? "" : version.substr(point + 1);
  return {leading_number(version).value_or(0), leading_number(minor).value_or(0)};
}

Finding no_gpu(const DoctorContext& context) {
  const Item item{"gpu", "device"};
  const std::size_t present = nvidia_pci_gpus(context.files).size();
  if (present == 0 && kernel_driver(context).empty()) {
    return item.ok("no GPU: " + context.cuda.reason);
  }
  const std::string seen = present == 0 ? "an NVIDIA driver is loaded"
                                        : fmt::format("{} NVIDIA GPU{} on the PCI bus", present,
                                                      present == 1 ? "" : "s");
  const std::string reason = fmt::format("{}, but {}", seen, context.cuda.reason);
  if (context.cuda.runtime.empty()) {
    return item.warn(reason, "install the CUDA toolkit 13 and build again: cmake --preset release");
  }
  if (context.cuda.driver.empty()) {
    return item.fail(
        reason,
        "modprobe nvidia, after installing the driver; in a container: docker run --gpus all");
  }
  if (comparable(context.cuda.driver) < comparable(context.cuda.runtime)) {
    return item.fail(reason, "install a driver for CUDA " + context.cuda.runtime + " or newer");
  }
  return item.fail(reason, "unset CUDA_VISIBLE_DEVICES; in a container: docker run --gpus all");
}

Finding devices(const DoctorContext& context) {
  std::string names;
  for (const GpuInfo& gpu : context.cuda.gpus) names += (names.empty() ? "" : ", ") + gpu.name;
  return Item{"gpu", "device"}.ok(names);
}

Finding driver(const DoctorContext& context) {
  const Item item{"gpu", "driver"};
  const std::string reason =
      fmt::format("{} supports CUDA {}; the runtime here is {}",
                  kernel_driver(context).empty() ? "the driver" : kernel_driver(context),
                  context.cuda.driver, context.cuda.runtime);
  if (comparable(context.cuda.driver) >= comparable(context.cuda.runtime)) return item.ok(reason);
  return item.warn(reason + ": PTX cannot be compiled for a GPU without machine code in the binary",
                   "install a driver for CUDA " + context.cuda.runtime + " or newer");
}

/// What a check found out about one GPU: empty when all is well.
struct Complaint {
  std::string reason;
  std::string fix;
};

/// One line for all GPUs: complaints where there are any, else what is well.
Finding for_each_gpu(const DoctorContext& context, const Item& item, const std::string& well,
                     const std::function<std::optional<Complaint>(int, const GpuFacts&)>& look) {
  Complaint all;
  bool answered = false;
  for (std::size_t gpu = 0; gpu < context.nvml.gpus.size(); ++gpu) {
    const auto complaint = look(static_cast<int>(gpu), context.nvml.gpus[gpu]);
    if (!complaint) continue;
    answered = true;
    if (complaint->reason.empty()) continue;
    all.reason +=
        fmt::format("{}GPU {}: {}", all.reason.empty() ? "" : "; ", gpu, complaint->reason);
    all.fix += (all.fix.empty() ? "" : " && ") + complaint->fix;
  }
  if (!answered) return item.unknown(kNotAsked);
  return all.reason.empty() ? item.ok(well) : item.warn(all.reason, all.fix);
}

Finding persistence(const DoctorContext& context) {
  return for_each_gpu(
      context, {"gpu", "persistence mode"}, "on", [](int gpu, const GpuFacts& facts) {
        if (!facts.persistence_mode) return std::optional<Complaint>();
        if (*facts.persistence_mode) return std::optional(Complaint{});
        return std::optional(
            Complaint{.reason = "off: the first call after a pause waits for the driver to start",
                      .fix = fmt::format("nvidia-smi -i {} -pm 1", gpu)});
      });
}

Finding mig(const DoctorContext& context) {
  return for_each_gpu(context, {"gpu", "mig"}, "off", [](int gpu, const GpuFacts& facts) {
    if (!facts.mig_enabled) return std::optional<Complaint>();
    if (!*facts.mig_enabled) return std::optional(Complaint{});
    return std::optional(Complaint{.reason = "on: only a slice of the GPU is measured",
                                   .fix = fmt::format("nvidia-smi -i {} -mig 0", gpu)});
  });
}

std::string throttle_fix(int gpu, const GpuState& state) {
  std::string all;
  for (const std::string& reason : state.throttle_reasons) all += reason + " ";
  if (state.thermal_slowdown || all.find("thermal") != std::string::npos) {
    return fmt::format("let it cool, check fans and airflow: nvidia-smi -i {} -q -d TEMPERATURE",
                       gpu);
  }
  if (all.find("power") != std::string::npos) {
    return fmt::format(
        "raise the limit to the maximum that nvidia-smi -i {0} -q -d POWER shows: "
        "nvidia-smi -i {0} -pl WATTS",
        gpu);
  }
  return fmt::format("nvidia-smi -i {} -q -d PERFORMANCE says what holds the clock down", gpu);
}

Finding clocks(const DoctorContext& context) {
  std::string well;
  for (std::size_t gpu = 0; gpu < context.nvml.gpus.size(); ++gpu) {
    const GpuFacts& facts = context.nvml.gpus[gpu];
    if (!facts.state) continue;
    well += fmt::format("{}GPU {}: {:.0f} MHz now", well.empty() ? "" : "; ", gpu,
                        facts.state->sm_clock_mhz);
    if (facts.max_sm_clock_mhz) well += fmt::format(", {:.0f} at most", *facts.max_sm_clock_mhz);
    well += fmt::format(", {:.0f} W", facts.state->power_w);
    if (facts.power_limit_w) well += fmt::format(" of {:.0f}", *facts.power_limit_w);
    well += fmt::format(", {:.0f} C", facts.state->temperature_c);
  }
  return for_each_gpu(context, {"gpu", "clocks"}, well, [](int gpu, const GpuFacts& facts) {
    if (!facts.state) return std::optional<Complaint>();
    const GpuState& state = *facts.state;
    if (state.throttle_reasons.empty() && !state.thermal_slowdown)
      return std::optional(Complaint{});
    const std::string why = state.throttle_reasons.empty()
                                ? "thermal slowdown"
                                : fmt::format("{}", fmt::join(state.throttle_reasons, ", "));
    return std::optional(
        Complaint{.reason = fmt::format("slowed to {:.0f} MHz ({})", state.sm_clock_mhz, why),
                  .fix = throttle_fix(gpu, state)});
  });
}

Finding processes(const DoctorContext& context) {
  return for_each_gpu(context, {"gpu", "other processes"}, "none", [](int, const GpuFacts& facts) {
    if (!facts.foreign_processes) return std::optional<Complaint>();
    Complaint complaint;
    for (const GpuProcess& process : *facts.foreign_processes) {
      complaint.reason +=
          fmt::format("{}process {} holds {}", complaint.reason.empty() ? "" : ", ", process.pid,
                      format_bytes(static_cast<double>(process.memory_bytes)));
      complaint.fix += fmt::format("{}{}", complaint.fix.empty() ? "kill " : " ", process.pid);
    }
    return std::optional(complaint);
  });
}

std::vector<Finding> check_state(const DoctorContext& context) {
  if (!context.nvml.missing.empty()) {
    return {Item{"gpu", "nvml"}.warn(
        "clocks, power and processes cannot be read: " + context.nvml.missing,
        "install the driver's libnvidia-ml.so.1; in a container: "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility")};
  }
  return {persistence(context), mig(context), clocks(context), processes(context)};
}

}  // namespace

std::vector<Finding> check_gpus(const DoctorContext& context) {
  if (context.cuda.gpus.empty()) return {no_gpu(context)};
  std::vector<Finding> findings = {devices(context), driver(context)};
  for (const auto& part : {check_state, check_gpu_topology, check_gpu_tools}) {
    auto found = part(context);
    std::move(found.begin(), found.end(), std::back_inserter(findings));
  }
  return findings;
}

}  // namespace gauntlet::lab::doctor
