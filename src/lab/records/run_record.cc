#include "lab/records/run_record.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "core/text/json_fields.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

json cpu_to_json(const CpuInfo& cpu) {
  return {{"model", cpu.model},
          {"cores", cpu.cores},
          {"numa_nodes", cpu.numa_nodes},
          {"l1d_bytes", cpu.l1d_bytes},
          {"l2_bytes", cpu.l2_bytes},
          {"last_level_bytes", cpu.last_level_bytes},
          {"memory_bytes", cpu.memory_bytes},
          {"simd", cpu.simd}};
}

CpuInfo cpu_from_json(const json& cpu) {
  return {.model = string_at(cpu, "model"),
          .cores = small_at(cpu, "cores"),
          .numa_nodes = small_at(cpu, "numa_nodes", 1),
          .l1d_bytes = integer_at(cpu, "l1d_bytes"),
          .l2_bytes = integer_at(cpu, "l2_bytes"),
          .last_level_bytes = integer_at(cpu, "last_level_bytes"),
          .memory_bytes = integer_at(cpu, "memory_bytes"),
          .simd = strings_at(cpu, "simd")};
}

json gpu_to_json(const GpuInfo& gpu) {
  return {{"name", gpu.name},
          {"compute_major", gpu.compute_major},
          {"compute_minor", gpu.compute_minor},
          {"num_sms", gpu.num_sms},
          {"max_threads_per_sm", gpu.max_threads_per_sm},
          {"shared_bytes_per_sm", gpu.shared_bytes_per_sm},
          {"l2_bytes", gpu.l2_bytes},
          {"memory_bytes", gpu.memory_bytes},
          {"uuid", gpu.uuid}};
}

GpuInfo gpu_from_json(const json& gpu) {
  return {.name = string_at(gpu, "name"),
          .compute_major = small_at(gpu, "compute_major"),
          .compute_minor = small_at(gpu, "compute_minor"),
          .num_sms = small_at(gpu, "num_sms"),
          .max_threads_per_sm = small_at(gpu, "max_threads_per_sm"),
          .shared_bytes_per_sm = integer_at(gpu, "shared_bytes_per_sm"),
          .l2_bytes = integer_at(gpu, "l2_bytes"),
          .memory_bytes = integer_at(gpu, "memory_bytes"),
          .uuid = string_at(gpu, "uuid")};
}

json machine_to_json(const MachineInfo& machine) {
  json gpus = json::array();
  for (const GpuInfo& gpu : machine.gpus) gpus.push_back(gpu_to_json(gpu));
  return {{"cpu", cpu_to_json(machine.cpu)},
          {"gpus", std::move(gpus)},
          {"no_gpu_reason", machine.no_gpu_reason},
          {"kernel", machine.kernel},
          {"os", machine.os},
          {"driver", machine.driver},
          {"cuda_runtime", machine.cuda_runtime},
          {"hypervisor", machine.hypervisor}};
}

MachineInfo machine_from_json(const json& machine) {
  MachineInfo out{.cpu = cpu_from_json(object_at(machine, "cpu")),
                  .no_gpu_reason = string_at(machine, "no_gpu_reason"),
                  .kernel = string_at(machine, "kernel"),
                  .os = string_at(machine, "os"),
                  .driver = string_at(machine, "driver"),
                  .cuda_runtime = string_at(machine, "cuda_runtime"),
                  .hypervisor = string_at(machine, "hypervisor")};
  for (const json& gpu : machine.value("gpus", json::array())) {
    out.gpus.push_back(gpu_from_json(gpu));
  }
  return out;
}

json build_to_json(const BuildInfo& build) {
  return {{"version", build.version},
          {"commit", build.commit},
          {"compiler", build.compiler},
          {"flags", build.flags},
          {"cuda_compiler", build.cuda_compiler},
          {"build_type", build.build_type}};
}

BuildInfo build_from_json(const json& build) {
  return {.version = string_at(build, "version"),
          .commit = string_at(build, "commit"),
          .compiler = string_at(build, "compiler"),
          .flags = string_at(build, "flags"),
          .cuda_compiler = string_at(build, "cuda_compiler"),
          .build_type = string_at(build, "build_type")};
}

Error misfit(const std::string& what) {
  return {.message = "not a results file that this binary reads: " + what,
          .kind = ErrorKind::wrong_use};
}

}  // namespace

json to_json(const RunRecord& record) {
  json results = json::array();
  for (const Result& result : record.results) results.push_back(to_json(result));
  json ceilings = json::array();
  for (const Ceilings& of_backend : record.ceilings) ceilings.push_back(to_json(of_backend));
  return {{"schema_version", kResultSchemaVersion},
          {"run_id", record.run_id},
          {"started_at", record.started_at},
          {"command_line", record.command_line},
          {"arguments", record.arguments},
          {"profile", record.profile},
          {"machine", machine_to_json(record.machine)},
          {"build", build_to_json(record.build)},
          {"ceilings", std::move(ceilings)},
          {"results", std::move(results)}};
}

std::string json_text(const RunRecord& record) {
  return to_json(record).dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Expected<RunRecord> run_record_from_json(const json& json) {
  std::size_t num_read = 0;
  bool in_results = false;
  try {
    const int version = json.at("schema_version").get<int>();
    if (version < 1 || version > kResultSchemaVersion) {
      return misfit("schema_version is " + std::to_string(version) + ", this binary reads 1 to " +
                    std::to_string(kResultSchemaVersion));
    }
    RunRecord record{.run_id = json.at("run_id").get<std::string>(),
                     .started_at = integer_at(json, "started_at"),
                     .command_line = string_at(json, "command_line"),
                     .arguments = strings_at(json, "arguments"),
                     .machine = machine_from_json(json.at("machine")),
                     .build = build_from_json(json.at("build")),
                     .profile = string_at(json, "profile")};
    for (const auto& of_backend : json.at("ceilings")) {
      auto ceilings = ceilings_from_json(of_backend);
      if (!ceilings) return ceilings.error();
      record.ceilings.push_back(std::move(*ceilings));
    }
    in_results = true;
    for (const auto& result : json.at("results")) {
      record.results.push_back(result_from_json(result, version));
      ++num_read;
    }
    return record;
  } catch (const std::exception& error) {
    const std::string where = in_results ? "result " + std::to_string(num_read) + ": " : "";
    return misfit(where + error.what());
  }
}

}  // namespace gauntlet::lab::inline records
