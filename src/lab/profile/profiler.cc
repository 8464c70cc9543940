// What each profile level counts.
#include "lab/profile/profiler.h"

#include <array>

#include "lab/profile/profiler_backends.h"

namespace gauntlet::lab::inline profile {
namespace {

using Names = std::vector<std::string>;

constexpr std::array kLevels = {ProfileLevel::none, ProfileLevel::minimal, ProfileLevel::roofline,
                                ProfileLevel::deep_dive};

Names join(std::initializer_list<Names> lists) {
  Names joined;
  for (const Names& list : lists) joined.insert(joined.end(), list.begin(), list.end());
  return joined;
}

Names gpu_dram_bytes() { return {"dram__bytes_read.sum", "dram__bytes_write.sum"}; }

Names gpu_access_pattern() {
  return {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
          "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
          "sm__warps_active.avg.pct_of_peak_sustained_active",  // achieved occupancy
          "smsp__inst_executed.sum"};
}

// An FMA is one of these instructions and two FLOPs; the tensor path counts single operations.
Names gpu_arithmetic() {
  Names names = {"dram__throughput.avg.pct_of_peak_sustained_elapsed",
                 "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                 "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
                 "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                 "sm__inst_executed_pipe_tensor.sum"};
  for (const char* type : {"f", "d", "h"}) {
    for (const char* operation : {"add", "mul", "fma"}) {
      names.push_back(std::string("smsp__sass_thread_inst_executed_op_") + type + operation +
                      "_pred_on.sum");
    }
  }
  for (const char* source : {"fp8", "fp16", "bf16_dst_fp32", "tf32_dst_fp32", "fp64", "int8"}) {
    names.push_back(std::string("sm__ops_path_tensor_src_") + source + ".sum");
  }
  return names;
}

Names gpu_caches() {
  return {"l1tex__t_sector_hit_rate.pct",
          "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
          "lts__t_sector_hit_rate.pct",
          "lts__t_sector_op_read_hit_rate.pct",
          "lts__t_sector_op_write_hit_rate.pct",
          "lts__t_bytes.sum",
          "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
          "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
          "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
          "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",
          "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum"};
}

Names gpu_issue() {
  Names names = {"smsp__issue_active.avg.pct_of_peak_sustained_active",
                 "smsp__average_warps_active_per_issue_active.ratio",
                 "smsp__average_warp_latency_per_inst_issued.ratio",
                 "smsp__average_thread_inst_executed_pred_on_per_inst_executed.ratio"};
  for (const char* reason :
       {"barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
        "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
        "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"}) {
    names.push_back(std::string("smsp__average_warps_issue_stalled_") + reason +
                    "_per_issue_active.ratio");
  }
  return names;
}

Names gpu_metrics(ProfileLevel level) {
  switch (level) {
    case ProfileLevel::none:
      return {};
    case ProfileLevel::minimal:
      return join({gpu_dram_bytes(), gpu_access_pattern()});
    case ProfileLevel::roofline:
      return join({gpu_dram_bytes(), gpu_arithmetic()});
    case ProfileLevel::deep_dive:
      return join(
          {gpu_dram_bytes(), gpu_access_pattern(), gpu_arithmetic(), gpu_caches(), gpu_issue()});
  }
  fail("profile level out of range");
}

Names cpu_metrics(ProfileLevel level) {
  const Names work = {"cycles", "instructions", "cache-references", "cache-misses"};
  const Names traffic = {"L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads",
                         "LLC-load-misses"};
  switch (level) {
    case ProfileLevel::none:
      return {};
    case ProfileLevel::minimal:
      return work;
    case ProfileLevel::roofline:
      return join({work, traffic});
    case ProfileLevel::deep_dive:
      return join({work,
                   traffic,
                   {"branch-instructions", "branch-misses", "dTLB-loads", "dTLB-load-misses",
                    "iTLB-load-misses", "page-faults", "context-switches", "cpu-migrations"}});
  }
  fail("profile level out of range");
}

}  // namespace

const char* name_of(ProfileLevel level) {
  switch (level) {
    case ProfileLevel::none:
      return "none";
    case ProfileLevel::minimal:
      return "minimal";
    case ProfileLevel::roofline:
      return "roofline";
    case ProfileLevel::deep_dive:
      return "deep_dive";
  }
  fail("profile level out of range");
}

std::optional<ProfileLevel> profile_level_from(const std::string& name) {
  for (const ProfileLevel level : kLevels) {
    if (name == name_of(level)) return level;
  }
  return std::nullopt;
}

std::vector<std::string> profile_metrics(ProfileLevel level, BackendKind backend) {
  return backend == BackendKind::cuda ? gpu_metrics(level) : cpu_metrics(level);
}

Expected<std::unique_ptr<Profiler>> make_profiler(BackendKind backend) {
  return backend == BackendKind::cuda ? make_cuda_profiler() : make_perf_profiler();
}

Expected<std::string> trace_gpu(const std::function<void()>& work) {
  const auto trace = record_gpu(work);
  if (!trace) return trace.error();
  return chrome_trace(trace->events, trace->dropped_records);
}

}  // namespace gauntlet::lab::inline profile
