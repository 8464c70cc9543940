#include "core/machine/gpu_driver.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/os/dynamic_library.h"

namespace gauntlet {
namespace {

/// The driver, started, and its first device.
struct FirstDevice {
  DynamicLibrary driver;
  int id = 0;
};

Expected<FirstDevice> first_device() {
  auto driver = DynamicLibrary::open({.names = {"libcuda.so.1"}});
  if (!driver) return Error{"no NVIDIA driver is installed (libcuda.so.1 is missing)"};
  driver->keep_loaded();
  const auto init = driver->symbol<int(unsigned)>("cuInit");
  const auto count_of = driver->symbol<int(int*)>("cuDeviceGetCount");
  const auto device_of = driver->symbol<int(int*, int)>("cuDeviceGet");
  if (!init) return init.error();
  if (!count_of) return count_of.error();
  if (!device_of) return device_of.error();
  if (const int code = (*init)(0); code != 0) {
    return Error{fmt::format("the NVIDIA driver does not start (CUDA error {})", code)};
  }
  int count = 0, device = 0;
  if ((*count_of)(&count) != 0 || count == 0 || (*device_of)(&device, 0) != 0) {
    return Error{"the driver shows no GPU"};
  }
  return FirstDevice{.driver = std::move(*driver), .id = device};
}

}  // namespace

Expected<int> gpu_attribute(GpuAttribute attribute) {
  const auto device = first_device();
  if (!device) return device.error();
  const auto attribute_of = device->driver.symbol<int(int*, int, int)>("cuDeviceGetAttribute");
  if (!attribute_of) return attribute_of.error();
  int value = 0;
  if ((*attribute_of)(&value, static_cast<int>(attribute), device->id) != 0) {
    return Error{fmt::format("the driver does not know attribute {}: update it",
                             static_cast<int>(attribute))};
  }
  return value;
}

Expected<std::string> gpu_pci_address() {
  const auto device = first_device();
  if (!device) return device.error();
  const auto address_of = device->driver.symbol<int(char*, int, int)>("cuDeviceGetPCIBusId");
  if (!address_of) return address_of.error();
  std::array<char, 32> text{};
  if (const int code = (*address_of)(text.data(), static_cast<int>(text.size()), device->id);
      code != 0) {
    return Error{
        fmt::format("the driver does not say where its first GPU is (CUDA error {})", code)};
  }
  return std::string(text.data());
}

}  // namespace gauntlet
