#include "core/machine/gpu_driver.h"

#include <fmt/format.h>

#include "core/os/dynamic_library.h"

namespace gauntlet {

Expected<int> gpu_attribute(GpuAttribute attribute) {
  const auto driver = DynamicLibrary::open({.names = {"libcuda.so.1"}});
  if (!driver) return Error{"no NVIDIA driver is installed (libcuda.so.1 is missing)"};
  driver->keep_loaded();
  const auto init = driver->symbol<int(unsigned)>("cuInit");
  const auto count_of = driver->symbol<int(int*)>("cuDeviceGetCount");
  const auto device_of = driver->symbol<int(int*, int)>("cuDeviceGet");
  const auto attribute_of = driver->symbol<int(int*, int, int)>("cuDeviceGetAttribute");
  if (!init) return init.error();
  if (!count_of) return count_of.error();
  if (!device_of) return device_of.error();
  if (!attribute_of) return attribute_of.error();
  int count = 0, device = 0, value = 0;
  if (const int code = (*init)(0); code != 0) {
    return Error{fmt::format("the NVIDIA driver does not start (CUDA error {})", code)};
  }
  if ((*count_of)(&count) != 0 || count == 0) return Error{"the driver shows no GPU"};
  if ((*device_of)(&device, 0) != 0 ||
      (*attribute_of)(&value, static_cast<int>(attribute), device) != 0) {
    return Error{fmt::format("the driver does not know attribute {}: update it",
                             static_cast<int>(attribute))};
  }
  return value;
}

}  // namespace gauntlet
