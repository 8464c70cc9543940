// Numbers in device memory that streams set and wait for, without a kernel: how streams of several
// processes meet on one GPU. Can be captured.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "core/expected.h"

namespace gauntlet {

/// One of a row of operations that a stream does in this order. What the stream was given before a
/// `set` can be seen by whoever sees the flag.
struct StreamFlag {
  enum class What { set, wait_for } what = What::set;
  std::uint32_t* flag = nullptr;  // in device memory, may be another process's
  std::uint32_t value = 0;        // to set, or that it has to have
};

/// Holds an error where the driver has no such operations.
Expected<void> stream_flags_available();

void enqueue(std::span<const StreamFlag> operations, cudaStream_t stream);

}  // namespace gauntlet
