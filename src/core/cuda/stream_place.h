// A place in a stream that the host may ask about, where waiting for it could take forever.
#pragma once
#include <cuda_runtime_api.h>

#include "core/cuda/check.h"

namespace gauntlet {

/// Of what cudaStreamQuery() and cudaEventQuery() return.
inline bool is_done(cudaError_t status) {
  if (status == cudaErrorNotReady) return false;
  cuda_check(status);
  return true;
}

class StreamPlace {
 public:
  StreamPlace() { cuda_check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;
  ~StreamPlace() { cudaEventDestroy(event_); }

  void record(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream)); }
  void wait() const { cuda_check(cudaEventSynchronize(event_)); }
  bool is_passed() const { return is_done(cudaEventQuery(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace gauntlet
