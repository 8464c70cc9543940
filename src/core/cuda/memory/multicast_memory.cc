#include "core/cuda/memory/multicast_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <bit>
#include <cstddef>

#include "core/cuda/check.h"
#include "core/cuda/gpu_set.h"

namespace gauntlet {
namespace {

/// Of the driver, through the runtime: the binary links no driver library.
struct Driver {
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
  decltype(&cuMulticastGetGranularity) granularity = nullptr;
  decltype(&cuMulticastCreate) create = nullptr;
  decltype(&cuMulticastAddDevice) add_device = nullptr;
  decltype(&cuMulticastBindMem) bind = nullptr;
  decltype(&cuMulticastUnbind) unbind = nullptr;
  decltype(&cuMemCreate) allocate = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
};

template <class Function>
bool find(const char* name, Function& function) {
  constexpr unsigned kSince = 12010;  // CUDA 12.1 brought multicast objects
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &address, kSince, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return false;
  }
  function = reinterpret_cast<Function>(address);
  return true;
}

bool find_all(Driver& driver) {
  return find("cuDeviceGet", driver.device_get) && find("cuGetErrorString", driver.error_string) &&
         find("cuMulticastGetGranularity", driver.granularity) &&
         find("cuMulticastCreate", driver.create) &&
         find("cuMulticastAddDevice", driver.add_device) &&
         find("cuMulticastBindMem", driver.bind) && find("cuMulticastUnbind", driver.unbind) &&
         find("cuMemCreate", driver.allocate) && find("cuMemRelease", driver.release) &&
         find("cuMemAddressReserve", driver.reserve) &&
         find("cuMemAddressFree", driver.unreserve) && find("cuMemMap", driver.map) &&
         find("cuMemUnmap", driver.unmap) && find("cuMemSetAccess", driver.set_access);
}

/// An address range with memory behind it.
struct Mapping {
  CUdeviceptr address = 0;
  bool mapped = false;
};

class Memory final : public MulticastMemory {
 public:
  explicit Memory(const Driver& driver) : driver_(driver) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() override {
    unmap(all_);
    for (Part& part : parts_) {
      unmap(part.mapping);
      if (part.bound) driver_.unbind(object_, part.device, 0, bytes_);
      if (part.memory != 0) driver_.release(part.memory);
    }
    if (object_ != 0) driver_.release(object_);
  }

  Expected<void> open(const std::vector<int>& devices, std::int64_t bytes) {
    num_gpus_ = devices.size();
    CUmulticastObjectProp object{};
    object.numDevices = static_cast<unsigned>(devices.size());
    object.size = static_cast<std::size_t>(bytes);
    std::size_t granularity = 0;
    auto done =
        call("cuMulticastGetGranularity",
             driver_.granularity(&granularity, &object, CU_MULTICAST_GRANULARITY_RECOMMENDED));
    if (!done) return done;
    bytes_ = (static_cast<std::size_t>(bytes) + granularity - 1) / granularity * granularity;
    object.size = bytes_;
    done = call("cuMulticastCreate", driver_.create(&object_, &object));
    if (!done) return done;
    // Before any memory is bound, all devices are there.
    for (const int device : devices) {
      const OnDevice on(device);
      cuda_check(cudaFree(nullptr));  // the device has a context from now on
      Part& part = parts_.emplace_back();
      done = call("cuDeviceGet", driver_.device_get(&part.device, device));
      if (done) done = call("cuMulticastAddDevice", driver_.add_device(object_, part.device));
      if (!done) return done;
    }
    for (Part& part : parts_) {
      done = bind(part);
      if (done) done = map(part.memory, granularity, part.mapping);
      if (!done) return done;
    }
    return map(object_, granularity, all_);
  }

  void* own(int index) const override {
    return pointer(parts_[static_cast<std::size_t>(index)].mapping);
  }
  void* all() const override { return pointer(all_); }

 private:
  using Handle = CUmemGenericAllocationHandle;
  struct Part {
    CUdevice device = 0;
    Handle memory = 0;
    bool bound = false;
    Mapping mapping;
  };

  /// The driver's addresses are numbers.
  static void* pointer(const Mapping& mapping) { return std::bit_cast<void*>(mapping.address); }

  Expected<void> call(const char* name, CUresult result) const {
    if (result == CUDA_SUCCESS) return {};
    const char* why = nullptr;
    driver_.error_string(result, &why);
    return Error{fmt::format("{} of {} GPUs: {}", name, num_gpus_, why ? why : "unknown"),
                 ErrorKind::environment};
  }

  Expected<void> bind(Part& part) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = part.device};
    auto made = call("cuMemCreate", driver_.allocate(&part.memory, bytes_, &properties, 0));
    if (!made) return made;
    auto bound = call("cuMulticastBindMem", driver_.bind(object_, 0, part.memory, 0, bytes_, 0));
    part.bound = static_cast<bool>(bound);
    return bound;
  }

  /// Every device may read and write there.
  Expected<void> map(Handle memory, std::size_t granularity, Mapping& mapping) {
    auto done =
        call("cuMemAddressReserve", driver_.reserve(&mapping.address, bytes_, granularity, 0, 0));
    if (done) done = call("cuMemMap", driver_.map(mapping.address, bytes_, 0, memory, 0));
    mapping.mapped = static_cast<bool>(done);
    if (!done) return done;
    std::vector<CUmemAccessDesc> access;
    for (const Part& part : parts_) {
      access.push_back({.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = part.device},
                        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    return call("cuMemSetAccess",
                driver_.set_access(mapping.address, bytes_, access.data(), access.size()));
  }

  void unmap(const Mapping& mapping) const {
    if (mapping.mapped) driver_.unmap(mapping.address, bytes_);
    if (mapping.address != 0) driver_.unreserve(mapping.address, bytes_);
  }

  Driver driver_;
  std::size_t num_gpus_ = 0;
  std::size_t bytes_ = 0;
  Handle object_ = 0;
  std::vector<Part> parts_;
  Mapping all_;
};

}  // namespace

Expected<std::unique_ptr<MulticastMemory>> MulticastMemory::make(const std::vector<int>& devices,
                                                                 std::int64_t bytes) {
  check(!devices.empty() && bytes > 0, "multicast memory of no GPU or of no bytes");
  Driver driver;
  if (!find_all(driver)) {
    return Error{"the CUDA driver has no multicast objects: install one of CUDA 12.1 or later",
                 ErrorKind::environment};
  }
  auto memory = std::make_unique<Memory>(driver);
  if (const auto opened = memory->open(devices, bytes); !opened) return opened.error();
  return std::unique_ptr<MulticastMemory>(std::move(memory));
}

}  // namespace gauntlet
