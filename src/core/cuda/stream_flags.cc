#include "core/cuda/stream_flags.h"

#include <cuda.h>

#include <vector>

#include "core/check.h"
#include "core/cuda/check.h"

namespace gauntlet {
namespace {

using BatchMemOp = decltype(&cuStreamBatchMemOp);

// Through the runtime: the binary links no driver library.
BatchMemOp find_batch_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &function,
                                                              11070, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<BatchMemOp>(function);
}

BatchMemOp batch_function() {
  static const BatchMemOp kFunction = find_batch_function();
  return kFunction;
}

}  // namespace

Expected<void> stream_flags_available() {
  if (batch_function() != nullptr) return {};
  return Error{"this driver has no memory operations on streams, by which ranks meet on a GPU"};
}

void enqueue(std::span<const StreamFlag> operations, cudaStream_t stream) {
  if (operations.empty()) return;
  std::vector<CUstreamBatchMemOpParams> batch(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const StreamFlag& from = operations[i];
    CUstreamBatchMemOpParams& to = batch[i];
    to = {};
    const auto address = reinterpret_cast<CUdeviceptr>(from.flag);
    if (from.what == StreamFlag::What::set) {
      to.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
      to.writeValue.address = address;
      to.writeValue.value = from.value;
      to.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    } else {
      to.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
      to.waitValue.address = address;
      to.waitValue.value = from.value;
      to.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    }
  }
  const BatchMemOp call = batch_function();
  check(call != nullptr, "streams of this driver have no memory operations");
  const CUresult status = call(reinterpret_cast<CUstream>(stream),
                               static_cast<unsigned>(batch.size()), batch.data(), 0);
  if (status != CUDA_SUCCESS) {
    throw CudaError("cuStreamBatchMemOp: driver error " + std::to_string(static_cast<int>(status)));
  }
}

}  // namespace gauntlet
