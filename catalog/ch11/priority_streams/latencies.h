// How long requests took on the device, from when it could have begun with them.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/memory.h"

namespace gauntlet::ch11::priority_streams {

class Latencies {
 public:
  /// Gives the stream a request and waits until it is answered.
  template <class Launch>
  void serve(cudaStream_t stream, const Launch& launch) {
    asked_.record(stream);
    launch();
    answered_.record(stream);
    answered_.wait();
    us_.push_back(static_cast<float>(answered_.us_since(asked_)));
  }

  /// "latency_us" since it was last asked.
  std::map<std::string, std::vector<float>> take() {
    return {{"latency_us", std::exchange(us_, {})}};
  }

 private:
  CudaEvent asked_{CudaEvent::Clock::runs}, answered_{CudaEvent::Clock::runs};
  std::vector<float> us_;
};

}  // namespace gauntlet::ch11::priority_streams
