// What a GPU still has to do when the last block was read.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/cuda/memory.h"
#include "lab/author/side.h"

namespace gauntlet::labs::input_pipeline {

/// By events of the stream that the side was given.
class Tail {
 public:
  /// The last block was read, and the stream has nothing to do.
  void begin(cudaStream_t stream) { begin_.record(stream); }
  /// The last that the stream is given.
  void end(cudaStream_t stream) {
    end_.record(stream);
    ran_ = true;
  }
  /// The side with the outcome "tail_ms", of its last run.
  static lab::Side reported(std::shared_ptr<Tail> tail, lab::Side side) {
    side.outcomes = [tail, others = std::move(side.outcomes)] {
      auto all = others ? others() : std::map<std::string, double>{};
      if (std::exchange(tail->ran_, false)) {
        tail->end_.wait();
        all["tail_ms"] = tail->end_.us_since(tail->begin_) / 1e3;
      }
      return all;
    };
    return side;
  }

 private:
  CudaEvent begin_{CudaEvent::Clock::runs}, end_{CudaEvent::Clock::runs};
  bool ran_ = false;
};

}  // namespace gauntlet::labs::input_pipeline
