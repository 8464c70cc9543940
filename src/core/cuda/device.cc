#include "core/cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/cuda/check.h"
#include "core/cuda/no_device_reason.h"

namespace gauntlet {
namespace {

/// As nvidia-smi writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int byte = 0; byte < 16; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[byte]));
  }
  return text;
}

GpuInfo describe(int device) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device));
  return {.name = properties.name,
          .compute_major = properties.major,
          .compute_minor = properties.minor,
          .num_sms = properties.multiProcessorCount,
          .max_threads_per_sm = properties.maxThreadsPerMultiProcessor,
          .shared_bytes_per_sm = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor),
          .l2_bytes = properties.l2CacheSize,
          .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .uuid = uuid_text(properties.uuid)};
}

}  // namespace

std::string version_text(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string no_device_reason(cudaError_t status, int driver_version, int runtime_version) {
  constexpr const char* kNone = "no CUDA device";
  if (driver_version == 0) return fmt::format("{} (no NVIDIA driver is loaded)", kNone);
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("{} (the driver supports CUDA {}, this binary needs {}: update the driver)",
                       kNone, version_text(driver_version), version_text(runtime_version));
  }
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    return fmt::format(
        "{} (the driver shows none to this process; check CUDA_VISIBLE_DEVICES and the container's "
        "devices)",
        kNone);
  }
  return fmt::format("{} ({}: {})", kNone, cudaGetErrorName(status), cudaGetErrorString(status));
}

GpuQuery query_gpus() {
  int driver_version = 0, runtime_version = 0;
  cuda_check(cudaRuntimeGetVersion(&runtime_version));
  // Without a driver this says 0 and succeeds.
  cuda_check(cudaDriverGetVersion(&driver_version));
  GpuQuery query{.driver = version_text(driver_version), .runtime = version_text(runtime_version)};
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    // The runtime keeps the error; a later check would take it for its own.
    (void)cudaGetLastError();
    query.reason = no_device_reason(status, driver_version, runtime_version);
    return query;
  }
  for (int device = 0; device < count; ++device) query.gpus.push_back(describe(device));
  return query;
}

}  // namespace gauntlet
