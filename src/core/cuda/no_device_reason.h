// Why the CUDA runtime shows no device, in words a person can act on.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace gauntlet {

/// "no CUDA device", then the detail in parentheses. Versions are CUDA's numbers (13000); a driver
/// of 0 is none.
std::string no_device_reason(cudaError_t status, int driver_version, int runtime_version);

/// 13000 -> "13.0"; 0 -> "".
std::string version_text(int version);

}  // namespace gauntlet
