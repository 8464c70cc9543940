// Which GPU, which plan, and how its memory is shared between weights, workspace and KV pages.
#pragma once
#include <cstdint>
#include <string>

#include "engine/cuda/buffers.h"
#include "engine/kv/kv_pool.h"
#include "engine/steps/cuda_executor.h"

namespace gauntlet::engine::cuda {

struct CudaSizing {
  CudaPlan plan;  // its memory is filled in
  BufferSizes buffers;
  KvPoolConfig pool;
};

/// Holds an error where there is no GPU that can, a shape the kernels do not take, or too little
/// memory, with the numbers and what would fit.
Expected<CudaSizing> size_cuda_executor(const model::ModelWeights& weights,
                                        const CudaExecutorConfig& config);

}  // namespace gauntlet::engine::cuda
