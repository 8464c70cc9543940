#include "core/machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/cuda/device.h"
#include "core/machine/host.h"
#include "core/text/text.h"

namespace gauntlet {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A model's name without what says nothing: "(R)", "CPU", "Processor", "96-Core", "@ 2.20GHz".
std::string short_model(const std::string& model) {
  std::string plain = model.substr(0, model.find('@'));
  for (const std::string_view mark : {"(R)", "(TM)", "(r)", "(tm)"}) {
    for (std::size_t at; (at = plain.find(mark)) != std::string::npos;)
      plain.erase(at, mark.size());
  }
  std::string kept;
  for (const std::string& word : split_words(plain)) {
    const std::size_t dash = word.find('-');
    const bool counts_cores = dash != std::string::npos && is_digits(word.substr(0, dash)) &&
                              word.substr(dash) == "-Core";
    if (word == "CPU" || word == "Processor" || counts_cores) continue;
    kept += word + " ";
  }
  return slugify(kept);
}

/// Where sysfs shows no caches (some sandboxes), the C library asks the processor.
void fill_missing_caches(CpuInfo& cpu) {
  const auto ask = [](int name) { return std::max<std::int64_t>(0, ::sysconf(name)); };
  if (cpu.l1d_bytes == 0) cpu.l1d_bytes = ask(_SC_LEVEL1_DCACHE_SIZE);
  if (cpu.l2_bytes == 0) cpu.l2_bytes = ask(_SC_LEVEL2_CACHE_SIZE);
  if (cpu.last_level_bytes == 0) cpu.last_level_bytes = ask(_SC_LEVEL3_CACHE_SIZE);
  if (cpu.last_level_bytes == 0) cpu.last_level_bytes = cpu.l2_bytes * cpu.cores;
}

}  // namespace

std::string MachineInfo::cpu_key() const {
  const std::string model = short_model(cpu.model);
  return (model.empty() ? "unknown-cpu" : model) + "-" + std::to_string(cpu.cores) + "c";
}

std::string MachineInfo::gpu_key() const {
  std::map<std::string, int> counts;
  for (const GpuInfo& gpu : gpus) ++counts[slugify(gpu.name)];
  std::string key;
  for (const auto& [name, count] : counts) {
    if (!key.empty()) key += "-";
    if (count > 1) key += std::to_string(count) + "x-";
    key += name;
  }
  return key;
}

MachineInfo read_machine(bool gpu_devices) {
  MachineInfo machine = read_host(SystemFiles(), probe_host());
  fill_missing_caches(machine.cpu);
  if (!gpu_devices) return machine;
  GpuQuery query = query_gpus();
  machine.gpus = std::move(query.gpus);
  machine.no_gpu_reason = std::move(query.reason);
  machine.driver = std::move(query.driver);
  machine.cuda_runtime = std::move(query.runtime);
  return machine;
}

}  // namespace gauntlet
