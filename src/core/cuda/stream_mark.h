// Order between streams: one waits, on the device, for what another had been given.
#pragma once
#include "core/cuda/check.h"

namespace gauntlet {

class StreamMark {
 public:
  StreamMark() { cuda_check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  StreamMark(const StreamMark&) = delete;
  StreamMark& operator=(const StreamMark&) = delete;
  ~StreamMark() { cudaEventDestroy(event_); }

  /// What the stream has been given so far. The mark and the stream are of the same device.
  void set(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream)); }
  /// What this stream is given from now on waits for what was marked, if anything was.
  void hold(cudaStream_t stream) const { cuda_check(cudaStreamWaitEvent(stream, event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace gauntlet
