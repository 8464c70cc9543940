#include <array>
#include <memory>
#include <mutex>

#include "core/check.h"
#include "core/cuda/check.h"
#include "kernels/cuda/device_facts.h"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kMostDevices = 64;

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

struct Remembered {
  std::once_flag once;
  DeviceFacts facts;
};

}  // namespace

const DeviceFacts& device_facts() {
  static std::array<Remembered, kMostDevices> devices;
  int device = 0;  // the runtime knows it without the driver
  cuda_check(cudaGetDevice(&device));
  check(device < kMostDevices, "more GPUs than a machine has");
  Remembered& own = devices[static_cast<std::size_t>(device)];
  std::call_once(own.once, [&] { own.facts = ask(device); });
  return own.facts;
}

}  // namespace gauntlet::kernels::cuda
