// GPUs as the CUDA runtime reports them. no_cuda_device.cc answers where there is no toolkit.
#pragma once
#include <string>
#include <vector>

#include "core/machine/machine.h"

namespace gauntlet {

struct GpuQuery {
  std::vector<GpuInfo> gpus;
  std::string reason;   // why there is none: "no CUDA device (...)", "built without CUDA"
  std::string driver;   // "13.0"
  std::string runtime;  // "13.0"
};

GpuQuery query_gpus();

}  // namespace gauntlet
