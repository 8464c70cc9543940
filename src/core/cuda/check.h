// cuda_check(): the one place where a CUDA status becomes an exception.
#pragma once
#include <cuda_runtime_api.h>

#include <source_location>
#include <string>

#include "core/check.h"

namespace gauntlet {

/// Thrown for CUDA failures; the text holds CUDA's name of the error.
class CudaError : public Fault {
 public:
  using Fault::Fault;
};

inline void cuda_check(cudaError_t status,
                       std::source_location where = std::source_location::current()) {
  if (status == cudaSuccess) return;
  std::string file = where.file_name();
  if (auto slash = file.rfind('/'); slash != std::string::npos) file.erase(0, slash + 1);
  throw CudaError(std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status) + " (" +
                  file + ":" + std::to_string(where.line()) + ")");
}

}  // namespace gauntlet
