// Waiting for a stream where the number of waits is the subject.
#pragma once
#include <cstdint>

#include "core/cuda/check.h"

namespace gauntlet {

/// Makes the host wait for streams, and counts how often it did.
class StreamWaits {
 public:
  void wait(cudaStream_t stream) {
    cuda_check(cudaStreamSynchronize(stream));
    ++count_;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace gauntlet
