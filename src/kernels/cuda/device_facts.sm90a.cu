#include <array>

#include "core/cuda/check.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/once_per_device.h"

namespace gauntlet::kernels::cuda {
namespace {

/// Never launched: a GPU has attributes of it where it can run code for sm_90a.
__global__ void sm90a_probe() {}

DeviceFacts ask(int device) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    cuda_check(cudaDeviceGetAttribute(&value, which, device));
    return value;
  };
  cudaFuncAttributes attributes{};
  const bool found = cudaFuncGetAttributes(&attributes, sm90a_probe) == cudaSuccess;
  if (!found) cudaGetLastError();  // it must not surface at the next call
  return {.num_sms = attribute(cudaDevAttrMultiProcessorCount),
          .most_shared_bytes =
              static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
          .has_bulk_copies = found};
}

}  // namespace

const DeviceFacts& device_facts() {
  static OncePerDevice once;
  static std::array<DeviceFacts, kMostDevices> devices;
  const int device = current_device();
  DeviceFacts& own = devices[static_cast<std::size_t>(device)];
  once.run(device, [&] { own = ask(device); });
  return own;
}

}  // namespace gauntlet::kernels::cuda
