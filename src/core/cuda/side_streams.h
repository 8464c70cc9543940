// Streams that work beside another: they start where it has come to, and it goes on where they are
// done.
#pragma once
#include <cuda_runtime_api.h>

#include <deque>
#include <vector>

#include "core/cuda/check.h"

namespace gauntlet {

/// A place in one stream that others wait for, without the host.
class StreamEvent {
 public:
  StreamEvent() { cuda_check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;
  ~StreamEvent() { cudaEventDestroy(event_); }

  void record(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream)); }
  /// What `stream` is given from now on waits for what was recorded last.
  void hold(cudaStream_t stream) const { cuda_check(cudaStreamWaitEvent(stream, event_, 0)); }

 private:
  cudaEvent_t event_ = nullptr;
};

class SideStreams {
 public:
  /// One stream for each priority; 0 is that of a stream that asks for none.
  explicit SideStreams(const std::vector<int>& priorities) {
    for (const int priority : priorities) streams_.emplace_back(priority);
  }

  cudaStream_t operator[](std::size_t index) const { return streams_[index].stream; }

  /// What they are given from now on starts when `main` has come to here.
  void fork(cudaStream_t main) const {
    forked_.record(main);
    for (const One& one : streams_) forked_.hold(one.stream);
  }
  /// What `main` is given from now on starts when they have done what they were given.
  void join(cudaStream_t main) const {
    for (const One& one : streams_) {
      one.done.record(one.stream);
      one.done.hold(main);
    }
  }

 private:
  struct One {
    explicit One(int priority) {
      cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    }
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    ~One() { cudaStreamDestroy(stream); }

    StreamEvent done;
    cudaStream_t stream = nullptr;
  };

  StreamEvent forked_;
  std::deque<One> streams_;
};

}  // namespace gauntlet
