// Copies in a stream where their number, or what they move, is the subject.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/cuda/check.h"

namespace gauntlet {

/// Copies from anywhere to anywhere, and counts how often and how much.
class StreamCopies {
 public:
  void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    ++count_;
    bytes_ += bytes;
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t count_ = 0, bytes_ = 0;
};

}  // namespace gauntlet
