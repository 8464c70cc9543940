// What machine this is: recorded in manifests, and the key under which ceilings and expectations
// are kept.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gauntlet {

struct GpuInfo {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  int num_sms = 0;
  int max_threads_per_sm = 0;
  std::int64_t shared_bytes_per_sm = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::string uuid;
};

struct CpuInfo {
  std::string model;
  int cores = 0;  // this process may use
  int numa_nodes = 1;
  std::int64_t l1d_bytes = 0;         // of one core
  std::int64_t l2_bytes = 0;          // of one core
  std::int64_t last_level_bytes = 0;  // all instances that those cores share in
  std::int64_t memory_bytes = 0;      // no more than the container may use
  std::vector<std::string> simd;      // of: avx2, avx512f, avx512_vnni, avx512_bf16, amx_tile, neon
};

struct MachineInfo {
  CpuInfo cpu;
  std::vector<GpuInfo> gpus;
  std::string no_gpu_reason;  // "no CUDA device", "built without CUDA", the driver's words
  std::string kernel;
  std::string os;
  std::string driver;        // CUDA driver version, as "13.0"
  std::string cuda_runtime;  // "13.0"
  std::string hypervisor;    // "kvm" or empty

  /// "amd-epyc-2c": CPU model and cores.
  std::string cpu_key() const;
  /// "nvidia-h200" or "2x-nvidia-h200"; empty without a GPU.
  std::string gpu_key() const;
};

/// `gpu_devices` false leaves the GPUs out and so starts no CUDA context.
MachineInfo read_machine(bool gpu_devices = true);

}  // namespace gauntlet
