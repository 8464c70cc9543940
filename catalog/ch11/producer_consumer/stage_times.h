// When each stage was at a packet, by the clock.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catalog/ch11/producer_consumer/pair.h"
#include "core/time_spans.h"

namespace gauntlet::ch11::producer_consumer {

/// Stages may be on threads of their own. It is read while none is at work.
class StageTimes {
 public:
  StageTimes() {
    for (Stage& stage : stages_) stage.spans.reserve(1 << 12);
  }

  /// Lets a stage process a packet.
  void process(int stage, Layer& layer, const std::int8_t* in, std::int8_t* out) {
    const std::int64_t begin_ns = now_ns();
    process_packet(layer, in, out);
    stages_[static_cast<std::size_t>(stage)].spans.push_back({begin_ns, now_ns()});
  }

  /// "stages_at_a_time" since it was last asked.
  std::map<std::string, double> take() {
    std::vector<std::vector<TimeSpan>> lanes;
    for (Stage& stage : stages_) {
      lanes.push_back(stage.spans);
      stage.spans.clear();
    }
    const double at_a_time = lanes_at_a_time(lanes);
    if (at_a_time == 0) return {};
    return {{"stages_at_a_time", at_a_time}};
  }

 private:
  static std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  struct alignas(64) Stage {
    std::vector<TimeSpan> spans;
  };

  std::array<Stage, 2> stages_;
};

}  // namespace gauntlet::ch11::producer_consumer
