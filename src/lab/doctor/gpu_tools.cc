// May this process read the GPU's counters, and can the libraries be opened that are not linked?
#include <fmt/format.h>

#include "lab/doctor/checks.h"
#include "lab/doctor/libraries.h"

namespace gauntlet::lab::doctor {
namespace {

Finding counter_permission(const DoctorContext& context) {
  const Item item{"gpu", "profiling permission"};
  const auto admin_only = context.files.field("/proc/driver/nvidia/params", "RmProfilingAdminOnly");
  if (!admin_only) return item.unknown("/proc/driver/nvidia/params is not readable");
  if (*admin_only == "0") return item.ok("any user may read counters");
  if (has_capability(context.files, Capability::sys_admin)) {
    return item.ok("administrators may read counters, and this process is one");
  }
  return item.warn("only administrators may read counters: witnesses and --profile will be missing",
                   "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > "
                   "/etc/modprobe.d/nvidia-profiling.conf and reboot; in a container: docker run "
                   "--cap-add=SYS_ADMIN");
}

Finding library(const DoctorContext& context, const LibraryFacts& facts) {
  const Item item{"gpu", facts.name};
  if (!facts.path.empty()) return item.ok(facts.path);
  for (const RuntimeLibrary& known : runtime_libraries()) {
    if (known.name != facts.name) continue;
    const std::string reason = fmt::format("{} ({} needs it)", facts.missing, known.purpose);
    if (known.use == RuntimeLibrary::Use::several_gpus && context.cuda.gpus.size() < 2) {
      return item.ok("not found, and not needed with one GPU");
    }
    return item.warn(reason, known.fix);
  }
  return item.warn(facts.missing, "set LD_LIBRARY_PATH to the folder that holds " + facts.name);
}

}  // namespace

std::vector<RuntimeLibrary> runtime_libraries() {
  return {
      {.name = "libcublas.so.13",
       .purpose = "the matrix ceilings",
       .fix = "apt install libcublas-13-0, or set LD_LIBRARY_PATH to the toolkit's lib64"},
      {.name = "libcupti.so.13",
       .purpose = "counters and traces",
       .fix = "apt install cuda-cupti-13-0, or set LD_LIBRARY_PATH to the toolkit's lib64"},
      {.name = "libnvidia-ml.so.1",
       .purpose = "clocks, power and throttling",
       .fix = "install the driver's NVML; in a container: "
              "NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
      {.name = "libnccl.so.2",
       .purpose = "ranks on several GPUs",
       .fix = "apt install libnccl2",
       .use = RuntimeLibrary::Use::several_gpus},
  };
}

std::vector<Finding> check_gpu_tools(const DoctorContext& context) {
  std::vector<Finding> findings = {counter_permission(context)};
  for (const LibraryFacts& facts : context.libraries) findings.push_back(library(context, facts));
  return findings;
}

}  // namespace gauntlet::lab::doctor
