// The CUDA driver through dlopen, for facts that are asked before any CUDA context exists and in
// builds without a toolkit.
#pragma once
#include <string>

#include "core/expected.h"

namespace gauntlet {

/// Facts of a device, by the driver's numbers (CUdevice_attribute).
enum class GpuAttribute {
  reads_host_page_tables = 100,  // the GPU shares the CPU's page tables: NVLink-C2C
  multicast = 132,               // switch multicast and reduction: NVLS
};

/// The attribute of the first device. The error says why there is no device to ask.
Expected<int> gpu_attribute(GpuAttribute attribute);

/// Where the first device is on the PCI bus: "0000:C1:00.0".
Expected<std::string> gpu_pci_address();

}  // namespace gauntlet
